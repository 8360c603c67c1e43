r"""Decodes server-sent events from bytes as they arrive. Pure: no network.

1. A line ends with LF, CR or CR LF, wherever the bytes are split.
2. One byte order mark at the very start is skipped.
3. The text is UTF-8; invalid bytes are an error, while a browser would replace them.
4. `data` lines are collected, joined by LF, and returned at the blank line that ends the event. An event without
   data is ignored; comments and all other fields are skipped.
5. Lines after the last blank line are no event: they are dropped when the stream ends.
6. The size of a line, and of the data of one event, is limited.
"""

import re
from collections.abc import Iterator

from beaver_hooks.agent.providers.faults import malformed, too_large

_LINE_END = re.compile(rb"\r\n?|\n")
_BOM = b"\xef\xbb\xbf"
LARGEST = 1024 * 1024


class EventDecoder:
    """Turns bytes into the data of events. The same bytes give the same events, with any split.

    Args:
        largest: the most bytes of a line, and of the data of an event.
    """

    def __init__(self, *, largest: int = LARGEST) -> None:
        self._largest = largest
        self._partial = bytearray()
        self._data: list[str] = []
        self._size = 0
        self._after_cr = False
        self._at_start = True

    def feed(self, received: bytes) -> Iterator[str]:
        """Yield the data of every event that `received` completes. Consume all of it before the next call.

        Raises:
            ProviderError: `malformed` for bytes that are not UTF-8, `too_large` for a line or event beyond the limit.
        """
        for line in self._lines(received):
            data = self._take(line)
            if data is not None:
                yield data

    def _lines(self, received: bytes) -> Iterator[bytes]:
        """Rule 1."""
        start = 1 if self._after_cr and received.startswith(b"\n") else 0
        if received:
            self._after_cr = received.endswith(b"\r")
        for end in _LINE_END.finditer(received, start):
            self._keep(received[start : end.start()])
            start = end.end()
            line = bytes(self._partial)
            self._partial.clear()
            yield self._without_mark(line)
        self._keep(received[start:])

    def _keep(self, part: bytes) -> None:
        self._partial += part
        if len(self._partial) > self._largest:
            raise too_large(self._largest)

    def _without_mark(self, line: bytes) -> bytes:
        """Rule 2."""
        at_start, self._at_start = self._at_start, False
        return line.removeprefix(_BOM) if at_start else line

    def _take(self, line: bytes) -> str | None:
        """Rules 3 and 4: return the data of the event that `line` ends, if it ends one."""
        name, _, value = _decoded(line).partition(":")
        if not line and self._data:
            event = "\n".join(self._data)
            self._data, self._size = [], 0
            return event
        if name == "data":
            self._size += len(line)
            if self._size > self._largest:
                raise too_large(self._largest)
            self._data.append(value.removeprefix(" "))
        return None


def _decoded(line: bytes) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        pass  # raised below, so that the error is not chained to one that holds the text
    raise malformed("its event stream is not UTF-8 text")
