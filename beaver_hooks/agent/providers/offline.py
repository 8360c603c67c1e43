"""A provider without a network and without a model: deterministic, and names the sources of its words.

1. After a tool has answered, it repeats the tool's answer.
2. Asked to remember a fact, it calls the tool `memory`, if that is on offer.
3. Any other prompt is compared with the given messages, and the lines that share most words with it are quoted, each
   with its source. Without such lines it says so.

It serves demonstrations, and tests of the whole path of a prompt.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from beaver_hooks.agent.messages import ChatMessage, Completion, OnDelta, Usage
from beaver_hooks.agent.providers.keyword_match import best_lines
from beaver_hooks.config.provider import ProviderSettings
from beaver_hooks.tools.outcomes import ToolCall
from beaver_hostspecs.tokens import estimate_tokens

NOTHING = "I was given nothing about that."
NO_TOOL = "I have no memory tool here, so I cannot keep that."

_TOOL = "memory"
_LONGEST_RESULT = 500
# The number of blanks in a row is limited, because the pattern would try a row of a million in every division.
_REMEMBER = re.compile(
    r"(?:(?:please|bitte)[,:]?\s{1,9})?"
    r"(?:remember(?:\s{0,9}[:,]|\s{1,9}that\b)?|merke?\s{1,9}dir(?:\s{0,9},?\s{0,9}(?:bitte|dass)\b){0,2}\s{0,9}[:,]?)"
    r"\s+(?P<what>\S.*)",
    re.IGNORECASE | re.DOTALL,
)
_OF_THE_USER = re.compile(
    r"\b(?:i|i'm|me|my|mine|myself|ich|mich|mir|mein|meine[mnrs]?|the user|user's)\b", re.IGNORECASE
)


class OfflineProvider:
    """Answers from the given messages; see the rules above."""

    async def complete(
        self,
        messages: Sequence[ChatMessage],
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        on_delta: OnDelta | None = None,
    ) -> Completion:
        """Return the answer; see `Provider.complete`. It never fails."""
        answer = _answer(messages, tools)
        if on_delta is not None:
            for word in re.findall(r"\s*\S+|\s+\Z", answer.text):
                on_delta(word)
        return answer

    async def close(self) -> None:
        """Nothing to close."""


def make(_settings: ProviderSettings) -> OfflineProvider:
    """Return the provider."""
    return OfflineProvider()


def _answer(messages: Sequence[ChatMessage], tools: Sequence[Mapping[str, Any]]) -> Completion:
    results = _results(messages)
    if results:
        return _said(messages, "\n".join(_account(messages, result) for result in results))
    asked = max((at for at, message in enumerate(messages) if message.role == "user"), default=None)
    prompt = "" if asked is None else messages[asked].text.strip()
    found = _REMEMBER.match(prompt)
    # "Remember when we met?" asks.
    if found is None or prompt.endswith("?"):
        lines = best_lines(prompt, messages[:asked])
        return _said(messages, "\n".join(f"From {source}: {line}" for source, line in lines) or NOTHING)
    if not any(tool.get("name") == _TOOL for tool in tools):
        return _said(messages, NO_TOOL)
    return _called(messages, found["what"])


def _results(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Return the tools' answers that the provider has not repeated yet."""
    found: list[ChatMessage] = []
    for message in reversed(messages):
        if message.role != "tool":
            break
        found.insert(0, message)
    return found


def _account(messages: Sequence[ChatMessage], result: ChatMessage) -> str:
    """Return the sentence about a tool's answer: it quotes the answer, which may be a failure."""
    calls = {call.id: call.name for message in messages for call in message.tool_calls}
    line = " ".join(_message(result.text).split())
    shown = line if len(line) <= _LONGEST_RESULT else line[: _LONGEST_RESULT - 3] + "..."
    return f"The tool {calls.get(str(result.tool_call_id), 'that was called')} answered: {shown or 'nothing'}"


def _message(text: str) -> str:
    """Return the sentence in a tool's answer, if it is an object with one, else all of it."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return text
    said = found.get("message") or found.get("error") if isinstance(found, dict) else None
    return said if isinstance(said, str) else text


def _said(messages: Sequence[ChatMessage], text: str) -> Completion:
    return Completion(text=text, usage=_usage(messages, text), finish_reason="stop")


def _called(messages: Sequence[ChatMessage], content: str) -> Completion:
    target = "user" if _OF_THE_USER.search(content) else "memory"
    arguments = json.dumps({"action": "add", "target": target, "content": content}, ensure_ascii=False)
    number = 1 + sum(len(message.tool_calls) for message in messages)
    return Completion(
        tool_calls=(ToolCall(id=f"offline-{number}", name=_TOOL, arguments=arguments),),
        usage=_usage(messages, arguments),
        finish_reason="tool_calls",
    )


def _usage(messages: Sequence[ChatMessage], answer: str) -> Usage:
    """Return an estimate of the tokens."""
    return Usage(
        input_tokens=sum(estimate_tokens(message.text) for message in messages),
        output_tokens=estimate_tokens(answer),
    )
