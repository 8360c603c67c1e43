"""Splits a message into the sentences that are statements of its speaker. Pure.

It leaves out `<private>` spans with their content, blocks of code, quoted lines and markup of chat transcripts. An open
`<private>` runs to the end of the text.
"""

import re

import attrs

LONGEST = 20_000
"""Characters of a text that are read."""

MOST = 200
"""Sentences of a text that are read."""

_PRIVATE = re.compile(r"<\s*private\s*>.*?(?:<\s*/\s*private\s*>|\Z)", re.IGNORECASE | re.DOTALL)
_CODE = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)", re.DOTALL)
_QUOTED = re.compile(r"(?m)^[ \t]*>.*$")
_LINE = re.compile(r"(?m)^[ \t]*(?:[-*\u2022+]|\d{1,2}[.)]|#{1,6})[ \t]+")
_END = re.compile(
    r"(?<=[.!?])(?<!\b[A-Za-z]\.)(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\bDr\.)(?<!\bMr\.)(?<!\bMs\.)(?<!\bz\.B\.)"
    r"[\"'\u201d\u2019)]*\s+(?=[^\sa-z])|(?<=[\u3002\uff01\uff1f])|\n+"
)


@attrs.frozen(kw_only=True)
class Sentence:
    """A sentence of a text.

    Attributes:
        text: the sentence without blanks around it.
        is_question: it asks.
    """

    text: str = attrs.field(repr=False)
    is_question: bool = False


def without_private(text: str) -> str:
    """Return a text without its `<private>` spans."""
    return _PRIVATE.sub(" ", text) if "<" in text else text


def holds_private(text: str) -> bool:
    """Return whether a text has a `<private>` span."""
    return "<" in text and _PRIVATE.search(text) is not None


def statement_text(text: str) -> str:
    """Return the part of a text that is a statement of its speaker."""
    text = without_private(text)[:LONGEST]
    return _QUOTED.sub(" ", _CODE.sub("\n", text))


def sentences(text: str) -> list[Sentence]:
    """Return the sentences of a text, in order."""
    found = []
    for part in _END.split(_LINE.sub("", statement_text(text))):
        plain = " ".join(part.split())
        if any(map(str.isalnum, plain)):
            found.append(Sentence(text=plain, is_question=plain.rstrip("\"'\u201d)").endswith(("?", "\uff1f"))))
        if len(found) == MOST:
            break
    return found
