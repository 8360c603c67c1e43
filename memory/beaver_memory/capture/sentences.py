"""Splits a message into the sentences that are statements of its speaker. Pure.

It leaves out `<private>` spans with their content, blocks of code, quoted lines and markup of chat transcripts. An open
`<private>` runs to the end of the text, and one span may hold another. A text whose speaker asks not to remember it has
no sentences.
"""

import re

import attrs

LONGEST = 20_000
"""Characters of a text that are read."""

MOST = 200
"""Sentences of a text that are read."""

_PRIVATE = re.compile(r"<\s*(?P<end>/\s*)?private(?:\s[^<>]*)?>", re.IGNORECASE)
_UNWANTED = re.compile(
    r"""
    (?:^|[.!?;:,\n(]|\b(?:please|so|but|and|you|just))\s*
      (?:do(?:\ not|n['\u2019]?t)(?:\ (?:need|have)\ to)?|never|must\ not|should(?:\ not|n['\u2019]?t)|no\ need\ to)\s+
      (?:please\ |ever\ )?(?:remember|memori[sz]e)\ (?:this|that|it|any(?:thing)?|my|what\ I)\b
    | (?<!\bI\ )(?<!\bwe\ )(?<!\bthey\ )\b(?:do(?:\ not|n['\u2019]?t)|never)\ (?:ever\ )?
      (?:store|save|keep|put|record|note)\ (?:this|that|it|any\ of\ (?:this|that|it))
      (?:\s*(?:[:!.]|$) | \ (?:in|to)\ (?:your\ |the\ )?memory\b)
    | \boff\ the\ record\s*[:,.!-]
    | \bmerke?\ dir\ (?:bitte\ )?(?:(?:das|dies|es)\ )?(?:bitte\ )?nicht\b(?!\ (?:nur|blo\u00df|allein))
    | (?:^|[.!?;:,\n(])\s*(?:bitte\ )?(?:(?:das|dies|es)\ )?(?:bitte\ )?nicht\ merken\b
    | (?<!\u6211)(?<!\u6211\u4eec)(?:\u4e0d\u8981|\u4e0d\u7528|\u522b|\u5225|\u8bf7\u52ff|\u8acb\u52ff)
      (?:\u518d)?(?:\u5e2e\u6211|\u5e6b\u6211)?(?:\u8bb0\u4f4f|\u8a18\u4f4f|\u8bb0\u4e0b|\u8a18\u4e0b|\u8bb0\u5f55|\u8a18\u9304)
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""Requests not to remember a text."""

_OF_UNWANTED = (
    " not",
    "dont",
    "don'",
    "don\u2019",
    "houldn",
    "never",
    "no need",
    "off the r",
    "cht",
    *"\u4e0d\u522b\u5225\u52ff",
)
"""Parts in small letters, one of which each of these requests has: most texts have none, and need no slower search."""

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
    found, depth, begin = "", 0, 0
    for tag in _PRIVATE.finditer(text):
        if not depth:
            found += text[begin : tag.start()] + " "
        depth = max(0, depth - 1) if tag["end"] else depth + 1
        begin = tag.end()
    return found if depth else found + text[begin:]


def holds_private(text: str) -> bool:
    """Return whether a text has a `<private>` span."""
    return _PRIVATE.search(text) is not None


def statement_text(text: str) -> str:
    """Return the part of a text that is a statement of its speaker; empty if they ask not to remember it."""
    text = without_private(text)[:LONGEST]
    text = _QUOTED.sub(" ", _CODE.sub("\n", text))
    small = text.lower()
    return "" if any(part in small for part in _OF_UNWANTED) and _UNWANTED.search(text) else text


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


def with_sentences(text: str) -> tuple[str, ...]:
    """Return a text and its sentences, each once."""
    return tuple(dict.fromkeys((text, *(each.text for each in sentences(text)))))
