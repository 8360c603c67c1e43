"""Turns what a host tells about a turn into the records of capture. Pure."""

from collections.abc import Iterator, Mapping

from beaver_hostspecs import Answer, ToolResult, Turn
from beaver_memory.capture.outcomes import ToolOutcome
from beaver_memory.capture.records import Utterance

LONGEST = 20_000
"""Characters of an answer or of an external text."""

MACHINES = frozenset({"tool", "tool_result"})
"""Who has caused a turn that no person said."""

_COMMANDS = ("command", "cmd", "script")
_PATHS = ("path", "file", "file_path", "filename", "notebook_path")
_LONGEST_ARGUMENT = 1_000


def utterances(turn: Turn, answer: Answer) -> tuple[Utterance, ...]:
    """Return the texts of a turn: its prompt, which may be captured, and its answer as context.

    A turn that a tool has caused is context, because no person said its prompt.
    """
    is_machine = not MACHINES.isdisjoint({turn.actors.speaker_kind, turn.actors.trigger})
    speaker = (turn.actors.speaker or "")[:LONGEST]
    prompt = Utterance(text=turn.prompt, turn=turn.id, when=turn.when, speaker=speaker, is_context=is_machine)
    reply = Utterance(text=answer.text[-LONGEST:], voice="assistant", turn=turn.id, when=answer.when, is_context=True)
    return prompt, reply


def tool_outcome(result: ToolResult) -> ToolOutcome:
    """Return how a tool ended, with the command and the paths that it was given."""
    return ToolOutcome(
        tool=result.tool,
        command=next(_given(result.arguments, _COMMANDS), ""),
        succeeded=result.outcome == "success",
        files=tuple(_given(result.arguments, _PATHS)),
        external=result.external,
    )


def external_text(turn: Turn, result: ToolResult) -> Utterance | None:
    """Return the external text that a tool gave, or `None`."""
    if not result.external or not isinstance(result.output, str):
        return None
    return Utterance(text=result.output[:LONGEST], voice="tool", turn=turn.id, external=True, is_context=True)


def _given(arguments: Mapping[str, object], names: tuple[str, ...]) -> Iterator[str]:
    found = (arguments.get(name) for name in names)
    return (each for each in found if isinstance(each, str) and 0 < len(each) <= _LONGEST_ARGUMENT)
