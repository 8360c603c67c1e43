"""Splits a text into statements. Pure."""

import re
from collections.abc import Iterable

LONGEST = 4_000
"""Characters of a text that are parsed."""

_LABEL = re.compile(r"^\s*(?:\[[^\]]{0,60}\]\s*)?(?:[A-Z][\w-]{0,30}:\s+(?=[A-Z\u4e00-\u9fff]))?")
_ABBREVIATIONS = "".join(rf"(?<!\b{each}\.)" for each in ("Dr", "Mr", "Ms", "Mrs", "St", "No", "Nr")) + r"(?<!\d\.)"
_ENDS = re.compile(_ABBREVIATIONS + r"(?<=[.!?;])\s+(?=[^\s\d])|[\n\u3002\uff01\uff1f\uff1b]+")
_CLAUSES = re.compile(
    r",\s+(?:(?:and|but|so|und|aber|sondern|denn)\s+)?(?=(?:I|I'm|we|it|now|ich|wir|jetzt|nun|sondern|das|es)\b)"
    r"|\uff0c(?=\u6211)",
    re.IGNORECASE,
)
_HELD = re.compile(
    r"\b(?:if|unless|wenn|falls)\b|\u5982\u679c|\u8981\u662f|\u5047\u5982|[\"\u201c\u201e\u00ab\u300c]", re.IGNORECASE
)
"""Marks of a condition or of quoted speech: its clauses say something only together."""


def statements(text: str, *, whole: bool = False) -> Iterable[str]:
    """Yield the statements of a text, without the mark of its speaker and time; questions are none."""
    for sentence in _ENDS.split(_LABEL.sub("", text[:LONGEST])):
        if sentence.rstrip().endswith(("?", "\uff1f")):
            continue
        for clause in [sentence] if whole or _HELD.search(sentence) else _CLAUSES.split(sentence):
            if clause.strip():
                yield clause.strip(" \t.!;,\u3002")
