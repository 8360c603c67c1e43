"""What the model sees of curated memory: a frozen block per target, the same bytes while nothing changes. Pure."""

from collections.abc import Callable, Sequence

import attrs
from attrs import field

from beaver_hooks_curated.entries import DELIMITER, Page, Target, handle
from beaver_hooks_curated.scanning import clean

HEADERS = {Target.MEMORY: "MEMORY (your personal notes)", Target.USER: "USER PROFILE (who the user is)"}
_RULE = "═" * 46
_ROOM, _LEAST_ROOM = 2, 4000
_HEAD, _TAIL = 0.7, 0.2

Scan = Callable[[str], tuple[str, ...]]


@attrs.frozen(kw_only=True)
class MemorySnapshot:
    """What one run gets to see.

    Attributes:
        blocks: texts for the system prompt; a target without entries has none.
        blocked: how many entries were kept out because they look like a threat, per target.
        clipped: shown and total characters of each target that is far too long.
    """

    blocks: tuple[str, ...] = field(default=(), repr=False)
    blocked: tuple[tuple[Target, int], ...] = ()
    clipped: tuple[tuple[Target, int, int], ...] = ()


def take(pages: Sequence[Page], scan: Scan) -> MemorySnapshot:
    """Return the snapshot of the pages.

    Args:
        pages: what is there.
        scan: names the threats in an entry.
    """
    blocks, blocked, clipped = [], [], []
    for page in pages:
        if not page.entries:
            continue
        shown = [shown_entry(page.target, number, entry, scan) for number, entry in enumerate(page.entries, 1)]
        count = sum(bool(scan(entry)) for entry in page.entries)
        if count:
            blocked.append((page.target, count))
        text = DELIMITER.join(shown)
        cut = _cut(text, max(_ROOM * page.limit, _LEAST_ROOM))
        if cut is not text:
            clipped.append((page.target, len(cut), len(text)))
        blocks.append(f"{_header(page)}\n{cut}")
    return MemorySnapshot(blocks=tuple(blocks), blocked=tuple(blocked), clipped=tuple(clipped))


def shown_entry(target: Target, number: int, entry: str, scan: Scan) -> str:
    """Return the entry as a model may see it: cleaned, or a marker in its place."""
    found = scan(entry)
    return blocked_marker(target, number, entry, found) if found else clean(entry)


def blocked_marker(target: Target, number: int, entry: str, found: Sequence[str]) -> str:
    """Return what stands for an entry that looks like a threat, with the handle by which it can be removed."""
    return (
        f"[BLOCKED: {target.file_name} entry {number} looks like a threat ({', '.join(found)}) and is not shown. "
        f"The user can read it in the file; memory(action=remove, target={target.value}, "
        f"old_text={handle(entry)}) removes it.]"
    )


def _header(page: Page) -> str:
    over = " ⚠ OVER BUDGET" if page.size > page.limit else ""
    return f"{_RULE}\n{HEADERS[page.target]} [{page.usage}]{over}\n{_RULE}"


def _cut(text: str, room: int) -> str:
    """Return the head and the tail of a text that a hand has made far too long."""
    if len(text) <= room:
        return text
    head, tail = int(room * _HEAD), int(room * _TAIL)
    return f"{text[:head]}\n[... {len(text) - head - tail:,} characters not shown ...]\n{text[-tail:]}"
