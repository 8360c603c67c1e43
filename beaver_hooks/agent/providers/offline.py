"""A provider without a network and without a model: deterministic, and names the sources of its words.

1. After a tool has answered, it repeats the tool's answer.
2. Asked to remember a fact, it calls the tool `memory`, if that is on offer.
3. Any other prompt is compared with the given messages, and the lines that share most words with it are quoted, each
   with its source. Without such lines it says so.

It serves demonstrations, and tests of the whole path of a prompt.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from beaver_hooks.agent.messages import ChatMessage, Completion, OnDelta, Usage
from beaver_hooks.config.provider import ProviderSettings
from beaver_hooks.tools.outcomes import ToolCall
from beaver_hostspecs.tokens import estimate_tokens
from beaver_toolkit.words import HANGUL, SPACELESS

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

MOST_LINES = 3
_NEWEST = 200
"""The most messages of the history that are searched; the next one is the most characters of each."""
_LONGEST = 20_000
_LONGEST_LINE = 500

_REFERENCES = re.compile(r'Reference data recalled by the memory plugin "(?P<plugin>[^"\n]*)"')
_BAR = "| "
_OWN = ("From ", "The tool ", "I was given nothing", "I have no memory tool")
"""The beginnings of the offline provider's answers: quoting them would quote quotations."""

_CJK = SPACELESS + HANGUL
_WORD = re.compile(rf"[{_CJK}]|[^\W_{_CJK}]{{2,}}")
_COMMON_WORDS = """
about all also am an and any are as at be been but by can could did do does for from had has have he her him his how if
in into is it its know me my not of on or our please said say she should so tell than that the their them then there
they this to us was we were what when where which who whom whose why will with would you your
aber als am an auch auf aus bei bin bist das dass dein deine dem den der des die dir du ein eine einem einen einer er es
haben hat habe ich ihr im in ist kann man mein meine mich mir mit nicht oder sie sind und uns von war warum was weisst
welche welcher welches wer wie wir wo zu zum zur
"""
"""Stop words in English and German."""
_COMMON = frozenset(_COMMON_WORDS.split())

Found = tuple[str, str]
"""The source of a line, and the line."""


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


def best_lines(question: str, given: Sequence[ChatMessage]) -> list[Found]:
    """Return at most three lines that share most words with `question`, in the order of `given`; or none.

    Args:
        question: the user's question.
        given: every message before it, the system prompt first.
    """
    asked = words(question)
    scored = [(len(asked & words(line)), source, line) for source, line in _lines(given)] if asked else []
    best = max((score for score, _, _ in scored), default=0)
    found = dict.fromkeys((source, line) for score, source, line in scored if score == best and best)
    return list(islice(found, MOST_LINES))


def words(text: str) -> frozenset[str]:
    """Return the distinctive words of a text, or of its beginning, without case and plural."""
    found = {*_WORD.findall(text[:_LONGEST].casefold())}
    return frozenset(_singular(word) for word in found - _COMMON)


def _singular(word: str) -> str:
    return word[:-1] if len(word) > len("abc") and word.endswith("s") else word


def _lines(given: Sequence[ChatMessage]) -> Iterator[Found]:
    spoken = [message for message in given if message.role in {"user", "assistant"}]
    newest = {id(message) for message in spoken[-_NEWEST:]}
    for message in given:
        if message.role == "system":
            yield from _of("the blocks in the system prompt", message.text)
        elif id(message) in newest or _REFERENCES.match(message.text):
            yield from _spoken(message)


def _spoken(message: ChatMessage) -> Iterator[Found]:
    found = _REFERENCES.match(message.text) if message.role == "user" else None
    if found is not None:
        quoted = (line.removeprefix(_BAR) for line in message.text.splitlines() if line.startswith(_BAR))
        yield from _of(f'the references of the memory plugin "{found["plugin"]}"', "\n".join(quoted))
    elif not message.text.startswith(_OWN):
        # An earlier question is no answer.
        yield from ((source, line) for source, line in _of("the history", message.text) if not line.endswith("?"))


def _of(source: str, text: str) -> Iterator[Found]:
    for line in text[:_LONGEST].splitlines():
        shown = line.strip()[:_LONGEST_LINE]
        if shown:
            yield source, shown
