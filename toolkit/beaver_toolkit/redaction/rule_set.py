"""All rules together: one pass over a text tells which of them can match it."""

from collections.abc import Iterable, Iterator
from functools import cache

import re2

from beaver_toolkit.redaction import addresses, codes, commands, fields, keys, numbers, sentences, vendors
from beaver_toolkit.redaction.rules import REACH, REST, Rule

MEMORY = 1 << 26
"""Bytes that the states of a pattern may take; RE2 makes them as texts need them."""

WORDS = "(?i)"
"""The beginning of hints in words, which fit in any case."""

FEW, BYTES_PER_CANDIDATE = 64, 640
"""How many candidates of a rule are checked in any text, and one more for so many of its bytes."""

Span = tuple[int, int, int, str]
"""Begin, end, rank and kind of a secret in a text. A tuple, as a hostile text has thousands."""


class HintSet:
    """Hints that are searched together, in one pass.

    Args:
        hints: the patterns.
    """

    def __init__(self, hints: Iterable[str]) -> None:
        self._set = re2.Set.SearchSet(_options())
        self._hints = {self._set.Add(hint): hint for hint in hints}
        self._set.Compile()

    def found(self, data: bytes) -> Iterator[str]:
        """Yield the hints that are in a text."""
        return (self._hints[place] for place in self._set.Match(data) or ())


class RuleSet:
    """Rules with their hints. Thread-safe.

    Hints in words and hints by shape are two sets: a text of fragments of both would bring one set to as many states
    as there are pairs of them.

    Args:
        rules: the rules.
    """

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._rules = tuple(rules)
        self._compiled: dict[int, SearchedRule] = {}
        self._of_hint: dict[str, list[int]] = {}
        for at, rule in enumerate(self._rules):
            for hint in rule.hints:
                self._of_hint.setdefault(hint, []).append(at)
        words = [hint for hint in self._of_hint if hint.startswith(WORDS)]
        self._sets = (HintSet(words), HintSet(hint for hint in self._of_hint if not hint.startswith(WORDS)))

    def of(self, data: bytes) -> Iterator["SearchedRule"]:
        """Yield the rules that may match a text."""
        there = {hint for each in self._sets for hint in each.found(data)}
        for at in sorted({at for hint in there for at in self._of_hint[hint]}):
            if there.issuperset(self._rules[at].hints):
                yield self._searched(at)

    def _searched(self, at: int) -> "SearchedRule":
        """Return a rule, compiled at its first use."""
        found = self._compiled.get(at)
        if found is None:
            found = self._compiled[at] = SearchedRule(self._rules[at])
        return found


class SearchedRule:
    """A rule with its compiled patterns.

    Args:
        rule: the rule.
    """

    def __init__(self, rule: Rule) -> None:
        self._rule = rule
        self._pattern = re2.compile(rule.pattern, _options())
        self._groups = range(1, self._pattern.groups + 1)
        self._before = None if rule.before is None else re2.compile(rule.before, _options())
        self._unless = None if rule.unless is None else re2.compile(rule.unless, _options())

    def spans(self, data: bytes) -> Iterator[Span]:
        """Yield the secrets of its kind in a text; the rest of a text that holds too many candidates is one secret."""
        rule, left = self._rule, FEW + len(data) // BYTES_PER_CANDIDATE
        for match in self._pattern.finditer(data):
            start, end = next((span for span in map(match.span, self._groups) if span[0] >= 0), None) or match.span()
            left -= 1
            if left < 0:
                yield start, len(data), REST, rule.kind
                return
            value = data[start:end]
            if (rule.check is None or rule.check(value)) and self._is_announced(data, start):
                yield start, end, rule.rank, rule.kind if rule.kind_of is None else rule.kind_of(value)

    def _is_announced(self, data: bytes, start: int) -> bool:
        """Return whether the words before a secret say what it is, and do not say that it is none."""
        if self._unless is not None and self._unless.search(data[max(start - REACH, 0) : start]) is not None:
            return False
        if self._before is None:
            return True
        begin = max(start - REACH, data.rfind(b"\n", 0, start) + 1)
        return self._before.search(data[begin:start]) is not None


def _options() -> re2.Options:
    options = re2.Options()
    options.log_errors, options.max_mem = False, MEMORY
    return options


@cache
def rule_set(*, emails: bool = False, phones: bool = False) -> RuleSet:
    """Return all rules, and those of addresses of people that are wanted."""
    people = [rule for rule, wanted in ((numbers.EMAILS, emails), (numbers.PHONES, phones)) if wanted]
    known = (vendors, keys, addresses, fields, commands, sentences, codes, numbers)
    return RuleSet([*(rule for each in known for rule in each.RULES), *people])
