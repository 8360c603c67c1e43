"""A streamed chat completion, assembled from the data of its events. Pure: no network.

1. Text is returned as it arrives. A fragment of a tool call belongs to the call that its index names; a fragment with
   another id under the same index begins another call, since some servers give all calls the first index.
2. The usage arrives in a chunk of its own, without choices, or with any other; the last one counts.
3. `[DONE]` ends the answer, and so does the end of the stream after a reason to finish was given. Any other end is a
   cut.
"""

import codecs
import io
import re
from collections.abc import Iterator

import attrs

from beaver_hooks.agent.messages import Completion, Usage
from beaver_hooks.agent.providers.faults import fault, malformed
from beaver_hooks.agent.providers.openai_wire import (
    Json,
    as_object,
    read,
    read_object,
    read_said,
    read_usage,
    tool_call,
)
from beaver_hooks.tools.outcomes import ToolCall

_END = "[DONE]"

_INVALID = re.compile("[\udc80-\udcff]")
"""Invalid bytes as the decoder returns them, so that the events before them are not lost."""


@attrs.define(kw_only=True)
class _Call:
    id: str
    name: str = ""
    arguments: list[str] = attrs.field(factory=list)

    def add(self, function: Json) -> None:
        name = read(function, "name", str)
        if name and self.name not in {"", name}:
            raise malformed("a tool call has two names")
        self.name = name or self.name
        self.arguments.append(read(function, "arguments", str))

    def whole(self) -> ToolCall:
        return tool_call(id=self.id, name=self.name, arguments="".join(self.arguments))


class StreamedCompletion:
    """Takes the events of one answer, then returns the whole answer.

    Attributes:
        done: whether the provider has ended the answer.
    """

    def __init__(self) -> None:
        self.done = False
        self._text: list[str] = []
        self._calls: list[_Call] = []
        self._open: dict[int, _Call] = {}
        self._usage: Usage | None = None
        self._finish_reason: str | None = None
        self._begun = False

    def feed(self, data: str) -> str:
        """Take the data of one event and return the text that it adds. Events after the end are ignored.

        Raises:
            ProviderError: it is no chunk of a completion, or an error.
        """
        if self.done or data.strip() == _END:
            self.done = True
            return ""
        chunk = read_object(data)
        self._usage = read_usage(chunk) or self._usage
        choices = [as_object(each, "a choice") for each in read(chunk, "choices", list)]
        return "".join(self._choice(each) for each in choices if read(each, "index", int) == 0)

    def finish(self) -> Completion:
        """Return the whole answer, once the stream has ended.

        Raises:
            ProviderError: `truncated` if it was cut, `malformed` if it contains no choice.
        """
        if not self.done and self._finish_reason is None:
            raise fault("truncated")
        if not self._begun:
            raise malformed("it holds no choices")
        return Completion(
            text="".join(self._text),
            tool_calls=tuple(each.whole() for each in self._calls),
            usage=self._usage,
            finish_reason=self._finish_reason,
        )

    def _choice(self, choice: Json) -> str:
        self._begun = True
        self._finish_reason = read(choice, "finish_reason", str) or self._finish_reason
        if choice.get("delta") is None:
            return ""
        delta = as_object(choice["delta"], "`delta`")
        for each in read(delta, "tool_calls", list):
            self._fragment(as_object(each, "a tool call"))
        said = read_said(delta)
        self._text.append(said)
        return said

    def _fragment(self, fragment: Json) -> None:
        """Rule 1."""
        index, id_ = read(fragment, "index", int), read(fragment, "id", str)
        call = self._open.get(index)
        if call is None or id_ not in {"", call.id}:
            call = self._open[index] = _Call(id=id_)
            self._calls.append(call)
        if fragment.get("function") is not None:
            call.add(as_object(fragment["function"], "`function`"))


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
