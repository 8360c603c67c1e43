"""Quotes texts: in quotation marks, on one line, without control characters for a terminal, and not too long."""

import json

LONGEST = 400
"""The shown characters of one text; a longer text is shown as its start and its end, with its length."""

HEAD, TAIL, AROUND = 240, 120, 40
DOTS = "\u2026"


def quoted(text: str) -> str:
    """Return `text` in quotation marks; a longer one as its start, its end and its length."""
    if len(text) <= LONGEST:
        return f'"{_escaped(text)}"'
    return f"{_excerpt(text, 0, 0)} ({len(text):,} characters)"


def quoted_change(before: str, after: str) -> str:
    """Return two texts as `"before" -> "after"`; longer ones as the parts around their difference."""
    if max(len(before), len(after)) <= LONGEST:
        return f"{quoted(before)} -> {quoted(after)}"
    same = _alike(before, after)
    same_end = _alike(before[same:][::-1], after[same:][::-1])
    start, end = max(0, same - AROUND), max(0, same_end - AROUND)
    lengths = f"{len(before):,} -> {len(after):,} characters"
    return f"{_excerpt(before, start, end)} -> {_excerpt(after, start, end)} ({lengths})"


def _alike(one: str, other: str) -> int:
    """Return how many characters two texts have in common at their start."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((number for number, (first, second) in pairs if first != second), min(len(one), len(other)))


def _excerpt(text: str, start: int, end: int) -> str:
    """Return `text` without `start` and `end` characters at its ends; cut a long rest in the middle."""
    middle = text[start : len(text) - end]
    if len(middle) > LONGEST:
        left_out = len(middle) - HEAD - TAIL
        shown = f"{_escaped(middle[:HEAD])}{DOTS} {left_out:,} more {DOTS}{_escaped(middle[-TAIL:])}"
    else:
        shown = _escaped(middle)
    return f'"{DOTS if start else ""}{shown}{DOTS if end else ""}"'


def _escaped(text: str) -> str:
    written = json.dumps(text, ensure_ascii=False)[1:-1]
    return "".join(each if each.isprintable() else f"\\u{ord(each):04x}" for each in written)
