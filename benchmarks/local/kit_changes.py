"""Made-up facts that change, and pairs of facts that both hold: templates with rows of values."""

from collections.abc import Iterable, Iterator, Sequence

import attrs

PERSONS = 4
"""The rows of each template: the facts of one row belong to one user."""


@attrs.frozen(kw_only=True)
class Change:
    """A fact that changes.

    Attributes:
        language: `en`, `de` or `zh`.
        kind: `update`, `negation`, `move` or `count`.
        older: ways to say what held.
        newer: ways to say what holds now.
        question: a question that the newer one answers.
        rows: the values of `{0}`, `{1}` and so on, one row for each user.
    """

    language: str
    kind: str
    older: Sequence[str]
    newer: Sequence[str]
    question: str
    rows: Sequence[Sequence[str]]


@attrs.frozen(kw_only=True)
class Pair:
    """Two facts that both hold; `shares` tells whether they share subject and attribute."""

    language: str
    shares: bool
    one: str
    other: str
    rows: Sequence[Sequence[str]]


@attrs.frozen(kw_only=True)
class Told:
    """Two statements of a user, the second one later than the first.

    Attributes:
        user: the user.
        kind: the kind of the change, `shared` or `other` for a pair that both hold.
        first: the earlier statement.
        second: the later one.
        question: a question that the later one answers; empty for a pair.
    """

    user: str
    kind: str
    first: str
    second: str
    question: str = ""


def changes(templates: Iterable[Change]) -> Iterator[Told]:
    """Yield each fact of each user with its change."""
    for each in templates:
        for place, row in enumerate(each.rows):
            yield Told(
                user=f"{each.language}-{place}",
                kind=each.kind,
                first=each.older[place % len(each.older)].format(*row),
                second=each.newer[place // 2 % len(each.newer)].format(*row),
                question=each.question.format(*row),
            )


def pairs(templates: Iterable[Pair]) -> Iterator[Told]:
    """Yield each pair, of a user of its own: two pairs of one user could contradict each other."""
    for number, each in enumerate(templates):
        for place, row in enumerate(each.rows):
            yield Told(
                user=f"{each.language}-{number}-{place}",
                kind="shared" if each.shares else "other",
                first=each.one.format(*row),
                second=each.other.format(*row),
            )
