"""Made-up facts that change, in `changes/`, and pairs of facts that both hold, in `pairs/`.

Each line of a file is a template with one row of values for each of four users. In `fresh` they are a nurse, a
developer, a retired farmer and a student in a band in English; the owner of a café, a teacher, a pensioner with bees
and a doctoral student in German; a nurse, a developer, a pensioner with bees and a student in a band in Chinese.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import attrs

HERE = Path(__file__).parent
sys.path.append(str(HERE.parents[1] / "tests"))

from case_files import cases  # noqa: E402 - found by the path above


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
    older: tuple[str, ...]
    newer: tuple[str, ...]
    question: str
    rows: tuple[tuple[str, ...], ...]


@attrs.frozen(kw_only=True)
class Pair:
    """Two facts that both hold.

    Attributes:
        language: `en`, `de` or `zh`.
        shares: whether they share subject and attribute.
        one: the earlier fact.
        other: the later one.
        rows: as in a change.
    """

    language: str
    shares: bool
    one: str
    other: str
    rows: tuple[tuple[str, ...], ...]


@attrs.frozen(kw_only=True)
class Told:
    """Two statements of a user, the second one later than the first.

    Attributes:
        user: the user.
        language: `en`, `de` or `zh`.
        kind: the kind of the change, `shared` or `other` for a pair that both hold.
        first: the earlier statement.
        second: the later one.
        question: a question that the later one answers; empty for a pair.
    """

    user: str
    language: str
    kind: str
    first: str
    second: str
    question: str = ""


def changes(name: str) -> Iterator[Told]:
    """Yield each fact of each user of a set with its change."""
    for each in cases(HERE / "changes" / f"{name}.jsonl", Change):
        for place, row in enumerate(each.rows):
            yield Told(
                user=f"{each.language}-{place}",
                language=each.language,
                kind=each.kind,
                first=each.older[place % len(each.older)].format(*row),
                second=each.newer[place // 2 % len(each.newer)].format(*row),
                question=each.question.format(*row),
            )


def pairs(name: str) -> Iterator[Told]:
    """Yield each pair of a set, of a user of its own: two pairs of one user could contradict each other."""
    for number, each in enumerate(cases(HERE / "pairs" / f"{name}.jsonl", Pair)):
        for place, row in enumerate(each.rows):
            yield Told(
                user=f"{each.language}-{number}-{place}",
                language=each.language,
                kind="shared" if each.shares else "other",
                first=each.one.format(*row),
                second=each.other.format(*row),
            )
