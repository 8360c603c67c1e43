"""The shape of a rule, and the parts of patterns that several rules share. Patterns are in the syntax of RE2."""

from collections.abc import Callable

import attrs
from attrs import field

LEFT = r"(?:\b|_|\\[nrt]|%[0-9A-Fa-f]{2})"
"""The beginning of a token: a line end in JSON and an encoded character of a URL end in letters."""

QUOTE = r"""(?:\\?["'`]|&quot;|[\x{201c}\x{201d}\x{201e}\x{2018}\x{300c}\x{300e}])"""
IN_QUOTES = r"""[^"'`\\\s\x00-\x1f\x{201c}\x{201d}\x{2019}\x{300d}\x{300f}\x{ff0c}\x{3002}]"""
"""A character of a value that ends at a quotation mark or a blank."""

MIXED = r"[A-Za-z]\d+[A-Za-z]|\d[A-Za-z]+\d|[a-z][A-Z][a-z][A-Z]"
"""A part of nearly every random text, and of few words."""

REST = 9
"""The rank of the rest of a text in which a rule has too many candidates; no rule has it."""

REACH = 80
"""Bytes before a secret in which a word may say what it is."""


@attrs.frozen(kw_only=True)
class Rule:
    """Finds one kind of secret.

    Attributes:
        kind: a noun in plain ASCII, for example `github token`.
        pattern: the secret is its first group that takes part in a match, or the match without one.
        hints: patterns that are cheaper to search for, and all of which are in every text with a match.
        before: a pattern that must be found on the line of a secret, in the `REACH` bytes before it.
        unless: a pattern that must not be found in the `REACH` bytes before a secret, also over several lines.
        check: whether a secret that the pattern finds is one; without it every one is.
        kind_of: names the kind of a secret, in place of `kind`.
        rank: of two rules that find the same secret, the one with the lower rank names it.
    """

    kind: str
    pattern: str = field(repr=False)
    hints: tuple[str, ...] = field(default=attrs.Factory(lambda self: (self.pattern,), takes_self=True), repr=False)
    before: str | None = field(default=None, repr=False)
    unless: str | None = field(default=None, repr=False)
    check: Callable[[bytes], bool] | None = None
    kind_of: Callable[[bytes], str] | None = None
    rank: int = 0
