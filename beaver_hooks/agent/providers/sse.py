r"""Decodes server-sent events from bytes as they arrive. Pure: no network. The caller limits the bytes.

1. A line ends with LF, CR or CR LF, wherever the bytes are split. A CR counts once the next byte is there.
2. One byte order mark at the very start is skipped.
3. The text is UTF-8; invalid bytes are an error, while a browser would replace them.
4. `data` lines are collected, joined by LF, and returned at the blank line that ends the event. An event without
   data is ignored; comments and all other fields are skipped.
5. Lines after the last blank line are no event: they are dropped when the stream ends.
"""

import codecs
import io
import re
from collections.abc import Iterator

from beaver_hooks.agent.providers.faults import malformed

_INVALID = re.compile("[\udc80-\udcff]")
"""Invalid bytes as the decoder returns them, so that the events before them are not lost."""


class EventDecoder:
    """Turns bytes into the data of events. The same bytes give the same events, with any split."""

    def __init__(self) -> None:
        text = codecs.getincrementaldecoder("utf-8-sig")("surrogateescape")
        self._decoder = io.IncrementalNewlineDecoder(text, translate=True)
        self._partial: list[str] = []
        self._data: list[str] = []

    def feed(self, received: bytes) -> Iterator[str]:
        """Yield the data of every event that `received` completes. Consume all of it before the next call.

        Raises:
            ProviderError: the bytes are not UTF-8.
        """
        *ends, rest = self._decoder.decode(received).split("\n")
        for end in ends:
            line = "".join((*self._partial, end))
            self._partial.clear()
            yield from self._event(line)
        self._partial.append(rest)

    def _event(self, line: str) -> Iterator[str]:
        """Yield the data of the event that `line` ends, if it ends one."""
        if _INVALID.search(line):
            raise malformed("its event stream is not UTF-8 text")
        name, _, value = line.partition(":")
        if name == "data":
            self._data.append(value.removeprefix(" "))
        elif not line and self._data:
            event, self._data = "\n".join(self._data), []
            yield event
