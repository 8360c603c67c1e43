"""Shows an answer on a terminal as Markdown, block by block while it arrives."""

import io
import re
import shutil
from collections.abc import Callable

from beaver_hooks.cli.terminal import Pieces, harmless, write
from beaver_hooks.cli.text_format import WIDTH

_PADDING = re.compile(r" +$", re.MULTILINE)
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


class MarkdownPieces(Pieces):
    """Renders each block of an answer once the next one begins, and the last one at the end."""

    def __init__(self, over: Callable[[], None]) -> None:
        super().__init__(over)
        self._rest = ""
        self._shown = False

    def __call__(self, piece: str) -> None:
        """Take one piece. A block can end only at the beginning of a line."""
        begins = "\n" in piece or self._rest.endswith("\n")
        self._rest += piece
        if begins:
            done, self._rest = whole_blocks(self._rest)
            self._show(done)

    def end(self) -> None:
        """Show the last block; later output is no part of this answer."""
        rest, self._rest = self._rest, ""
        self._show(rest)
        self._shown = False

    def _show(self, text: str) -> None:
        if text.strip():
            self.over()
            write(("\n" if self._shown else "") + rendered(text))
            self._shown = True


def whole_blocks(text: str) -> tuple[str, str]:
    """Return the blocks of Markdown that are complete, and the rest. Pure.

    A block ends at a blank line that an unindented line follows, outside of fenced code.
    """
    ends, position, fence, blank = 0, 0, "", False
    for line in text.splitlines(keepends=True):
        found = _FENCE.match(line)
        if not fence and blank and not line[0].isspace():
            ends = position
        if found and not fence:
            fence = found[1]
        elif found and found[1].startswith(fence) and not line[found.end() :].strip():
            fence = ""
        blank = not line.strip()
        position += len(line)
    return text[:ends], text[ends:]


def rendered(text: str) -> str:
    """Return Markdown rendered for a terminal: no text is lost, no link is hidden, HTML is text."""
    # Slow to import, and only a conversation on a terminal needs it.
    from rich.console import Console  # noqa: PLC0415
    from rich.markdown import Markdown  # noqa: PLC0415

    markdown = Markdown(harmless(text), hyperlinks=False)
    for token in markdown.parsed:
        token.type = "code_block" if token.type == "html_block" else token.type
        for child in token.children or ():
            child.type = "text" if child.type == "html_inline" else child.type
    width = shutil.get_terminal_size((WIDTH, 24)).columns
    screen = io.StringIO()
    Console(file=screen, force_terminal=True, legacy_windows=False, width=width).print(markdown)
    # rich pads each line to the full width; a copied line would keep the blanks.
    return _PADDING.sub("", screen.getvalue()).strip("\n") + "\n"
