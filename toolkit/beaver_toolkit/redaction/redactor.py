"""Finds secrets in a text, and replaces each by the name of its kind."""

import re
import threading
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

import attrs

from beaver_hostspecs.scrubbing import SCRUBBER, Scrubber
from beaver_toolkit.redaction.rules import REST

if TYPE_CHECKING:
    from ahocorasick_rs import BytesAhoCorasick

    from beaver_toolkit.redaction.rule_set import RuleSet, Span


HELD = "held secret"
MOST_ROUNDS = 3
"""Times that a text is searched: what stands beside a mask may be a secret as well."""

_MASK = re.compile(rb"\[redacted: [a-z0-9. -]{1,40}\]")
_BARRIER = 0x1F


@attrs.frozen(kw_only=True)
class Policy:
    """What counts as a secret beside credentials, card and account numbers.

    Attributes:
        emails: whether e-mail addresses do.
        phones: whether phone numbers do.
    """

    emails: bool = False
    phones: bool = False


@attrs.frozen(kw_only=True)
class Finding:
    """How many secrets of a kind are in a text."""

    kind: str
    count: int


@attrs.frozen(kw_only=True)
class Redacted:
    """A text without secrets, and the numbers of its secrets by kind."""

    text: str = attrs.field(repr=False)
    findings: tuple[Finding, ...] = ()


class HeldSecrets:
    """Searches a text for all secrets of a scrubber in one pass, by Aho and Corasick. Thread-safe.

    Args:
        scrubber: knows the secrets; that of the process unless given.
    """

    def __init__(self, scrubber: Scrubber = SCRUBBER) -> None:
        self._scrubber = scrubber
        self._lock = threading.Lock()
        self._known = 0
        self._automaton: BytesAhoCorasick | None = None

    def spans(self, data: bytes) -> list[tuple[int, int]]:
        """Return where secrets are in a text in UTF-8."""
        automaton = self._current()
        if automaton is None:
            return []
        return [(start, end) for _, start, end in automaton.find_matches_as_indexes(data, overlapping=True)]

    def _current(self) -> "BytesAhoCorasick | None":
        """Return the automaton of the secrets that are known now; `None` without any."""
        known = self._scrubber.known
        if known == self._known:
            return self._automaton
        # Imported late: a process without secrets does not need it.
        from ahocorasick_rs import BytesAhoCorasick  # noqa: PLC0415

        with self._lock:
            needles = [each.encode("utf-8", "surrogatepass") for each in self._scrubber.needles()]
            self._automaton, self._known = BytesAhoCorasick(needles), known
            return self._automaton


HELD_SECRETS = HeldSecrets()
"""Those of the process. Redactors share them, as an automaton takes milliseconds to build."""


class Redactor:
    """Finds and replaces secrets. Thread-safe; linear in the length of a text.

    Args:
        policy: what counts as a secret.
        held: the secrets to look for; those of the process unless given.
    """

    def __init__(self, policy: Policy | None = None, held: HeldSecrets | None = None) -> None:
        self._policy = policy or Policy()
        self._held = held or HELD_SECRETS
        self._known: RuleSet | None = None

    def redact(self, text: str) -> Redacted:
        """Return a text with a mask such as `[redacted: github token]` for each secret."""
        data = text.encode("utf-8", "surrogatepass")
        counts = Counter[str]()
        for _ in range(MOST_ROUNDS):
            spans = self._spans(data)
            if not spans:
                break
            counts.update(kind for _, _, _, kind in spans)
            data = _masked(data, spans)
        return Redacted(text=data.decode("utf-8", "surrogatepass") if counts else text, findings=_findings(counts))

    def find(self, text: str) -> tuple[Finding, ...]:
        """Return the kinds of the secrets in a text, with their numbers."""
        return _findings(kind for _, _, _, kind in self._spans(text.encode("utf-8", "surrogatepass")))

    def _rules(self) -> "RuleSet":
        if self._known is None:
            # Imported late: the library and the rules load with the first text.
            from beaver_toolkit.redaction.rule_set import rule_set  # noqa: PLC0415

            self._known = rule_set(emails=self._policy.emails, phones=self._policy.phones)
        return self._known

    def _spans(self, data: bytes) -> "list[Span]":
        shown = _MASK.sub(_barrier, data) if b"[redacted: " in data else data
        found: list[Span] = [(start, end, -1, HELD) for start, end in self._held.spans(shown)]
        for rule in self._rules().of(shown):
            found += rule.spans(shown)
            if found and found[-1][2] == REST:
                shown = shown[: found[-1][0]]
        return _joined(sorted(found))


def _barrier(mask: re.Match[bytes]) -> bytes:
    """Return characters that no rule matches, in place of a mask."""
    return bytes([_BARRIER]) * len(mask[0])


def _joined(spans: "list[Span]") -> "list[Span]":
    """Return sorted spans with those that overlap as one, of the kind that is known best."""
    joined: list[Span] = []
    for span in spans:
        if not joined or span[0] >= joined[-1][1]:
            joined.append(span)
            continue
        last = joined[-1]
        _, _, rank, kind = span if span[2] < last[2] else last
        joined[-1] = (last[0], max(last[1], span[1]), rank, kind)
    return joined


def _masked(data: bytes, spans: "list[Span]") -> bytes:
    parts, end = [], 0
    for start, stop, _, kind in spans:
        parts += [data[end:start], b"[redacted: %s]" % kind.encode("ascii")]
        end = stop
    return b"".join([*parts, data[end:]])


def _findings(kinds: Iterable[str]) -> tuple[Finding, ...]:
    return tuple(Finding(kind=kind, count=count) for kind, count in sorted(Counter(kinds).items()))
