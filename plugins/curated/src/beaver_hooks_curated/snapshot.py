"""The snapshot that the model sees: a frozen block per target, the same bytes while nothing changes. Pure."""

from collections.abc import Sequence

import attrs
from attrs import field

from beaver_hooks_curated.entries import DELIMITER, MOST_ENTRIES, Entries, Page, Target, handle
from beaver_hooks_curated.threat_scan import clean, threats

HEADERS = {Target.MEMORY: "MEMORY (your personal notes)", Target.USER: "USER PROFILE (who the user is)"}
_RULE = "═" * 46
_ROOM, _LEAST_ROOM = 2, 4000
_HEAD, _TAIL = 0.7, 0.2


@attrs.frozen(kw_only=True)
class MemorySnapshot:
    """The curated memory of one run.

    Attributes:
        blocks: texts for the system prompt; a target without entries has none.
        blocked: how many entries were kept out because they look like a threat, per target.
        clipped: shown and total characters of each target that is far too long, or has too many entries.
    """

    blocks: tuple[str, ...] = field(default=(), repr=False)
    blocked: tuple[tuple[Target, int], ...] = ()
    clipped: tuple[tuple[Target, int, int], ...] = ()


def take(pages: Sequence[Page]) -> MemorySnapshot:
    """Return the snapshot of the pages."""
    blocks, blocked, clipped = [], [], []
    for page in pages:
        if not page.entries:
            continue
        head, tail = _shown_numbers(page)
        if count := sum(bool(threats(page.entries[number])) for number in (*head, *tail)):
            blocked.append((page.target, count))
        shown = [shown_entry(page.target, number + 1, page.entries[number]) for number in (*head, *tail)]
        text, cut = _cut(page, shown[: len(head)], shown[len(head) :])
        if cut:
            clipped.append((page.target, len(text), page.size))
        blocks.append(f"{_header(page)}\n{text}")
    return MemorySnapshot(blocks=tuple(blocks), blocked=tuple(blocked), clipped=tuple(clipped))


def shown_entry(target: Target, number: int, entry: str) -> str:
    """Return the entry as a model may see it: cleaned, or a marker in its place."""
    if not (found := threats(entry)):
        return clean(entry)
    return (
        f"[BLOCKED: {target.file_name} entry {number} looks like a threat ({', '.join(found)}) and is not shown. "
        f"The user can read it in the file; memory(action=remove, target={target.value}, "
        f"old_text={handle(entry)}) removes it.]"
    )


def shown_entries(page: Page) -> list[str]:
    """Return the entries of a page as a model may see them, without the middle ones where there are too many."""
    head, tail = _shown_numbers(page)
    shown = [shown_entry(page.target, number + 1, page.entries[number]) for number in (*head, *tail)]
    gap = [_gap(page, len(shown))] if len(shown) < len(page.entries) else []
    return [*shown[: len(head)], *gap, *shown[len(head) :]]


def _header(page: Page) -> str:
    over = " ⚠ OVER BUDGET" if page.size > page.limit else ""
    return f"{_RULE}\n{HEADERS[page.target]} [{page.usage}]{over}\n{_RULE}"


def _shown_numbers(page: Page) -> tuple[range, range]:
    """Return the numbers of the entries that are shown, at the head and at the tail. No others are scanned."""
    total, room = len(page.entries), _room(page)
    if total <= MOST_ENTRIES and page.size <= room:
        return range(total), range(0)
    head = _filling(page.entries, _HEAD * room, _HEAD * MOST_ENTRIES)
    tail = _filling(page.entries[: head - 1 : -1], _TAIL * room, _TAIL * MOST_ENTRIES)
    return range(head), range(total - tail, total)


def _filling(entries: Entries, characters: float, most: float) -> int:
    """Return how many entries fill that many characters; the last one may be cut."""
    used = count = 0
    for entry in entries:
        if used >= characters or count >= most:
            break
        used += len(entry) + len(DELIMITER)
        count += 1
    return count


def _cut(page: Page, head: Sequence[str], tail: Sequence[str]) -> tuple[str, bool]:
    """Return the text of a block, and whether it lacks a part of a file that the user made far too long."""
    room, shown = _room(page), len(head) + len(tail)
    text = DELIMITER.join((*head, *tail))
    front, back = int(room * _HEAD), int(room * _TAIL)
    if shown < len(page.entries):
        return f"{DELIMITER.join(head)[:front]}\n{_gap(page, shown)}\n{DELIMITER.join(tail)[-back:]}", True
    if len(text) <= room:
        return text, False
    return f"{text[:front]}\n[... {len(text) - front - back:,} characters not shown ...]\n{text[-back:]}", True


def _gap(page: Page, shown: int) -> str:
    total = len(page.entries)
    return (
        f"[... {total - shown:,} of {total:,} entries not shown; {page.target.file_name} should hold at most "
        f"{MOST_ENTRIES:,} entries and {page.limit:,} characters ...]"
    )


def _room(page: Page) -> int:
    return max(_ROOM * page.limit, _LEAST_ROOM)
