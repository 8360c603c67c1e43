"""A well-behaved plugin, a report and a `FileTrust` that record their calls."""

import re
from collections.abc import Iterable, Mapping
from math import inf
from pathlib import Path

from beaver_hostspecs.contributions import Contribution
from beaver_hostspecs.errors import ConfigurationError
from beaver_hostspecs.freezing import freeze
from beaver_hostspecs.plugins import Command, PluginInfo, Tool
from beaver_hostspecs.reports import OutcomeKind, Personal
from beaver_hostspecs.testing.hooked import Call, HookedPlugin


class RecordingPlugin(HookedPlugin):
    """Implements every hook, records each call and answers with its attributes.

    Attributes:
        contribution: the answer of `before_prompt`; may be changed between turns.
        tools: the answer of `provide_tools`.
        commands: the answer of `provide_commands`.
        info: the answer of `describe`.
    """

    def __init__(
        self,
        contribution: Contribution | None = None,
        tools: Iterable[Tool] = (),
        info: PluginInfo | None = None,
        *,
        commands: Iterable[Command] = (),
    ) -> None:
        super().__init__()
        self.contribution = contribution
        self.tools = tuple(tools)
        self.commands = tuple(commands)
        self.info = info or PluginInfo(version="0", contract="1.0")

    def answer_now(self, call: Call) -> object:
        """Return this plugin's answer of the hook."""
        answers = {"describe": self.info, "provide_tools": self.tools, "provide_commands": self.commands}
        return answers.get(call.hook)

    async def answer(self, call: Call) -> object:
        """Return the contribution to `before_prompt`, and `None` to the other hooks."""
        return self.contribution if call.hook == "before_prompt" else None


class RecordedFiles:
    """Believes of each file its recorded contents alone.

    Attributes:
        recorded: the believed contents, by file.
        broken: whether recording fails.
    """

    def __init__(self) -> None:
        self.recorded: dict[Path, set[bytes]] = {}
        self.broken = False

    def doubts(self, path: Path) -> bool:  # noqa: ARG002 - as the protocol has it
        """Doubt every file."""
        return True

    def believes(self, path: Path, content: bytes) -> bool:
        """Whether this content was recorded; an empty file is always believed."""
        return not content or content in self.recorded.get(path, ())

    def record(self, path: Path, content: bytes) -> None:
        """Believe this content; the replaced content stays believed, if it was."""
        if self.broken:
            raise ConfigurationError("", "nothing can be recorded")
        before = {path.read_bytes()} if path.is_file() else set()
        self.recorded[path] = {content} | (before & self.recorded.get(path, set()))


class RecordingReport:
    """A `Report` for tests of plugins. As strict about arguments as the contract, and writes nothing.

    Attributes:
        seconds: the answer of `remaining`.
        events: names and facts.
        candidate_lists: the candidates, one tuple per call.
        decisions: gates, verdicts and reasons.
        outcomes: planes, kinds and facts.
        clippings: subject, shown amount and total of each cut.
        notices: sentences for the user.
        degradations: categories.
        recoveries: how often `recovered` was called.
    """

    def __init__(self, remaining: float = inf) -> None:
        self.seconds = remaining
        self.events: list[tuple[str, Mapping[str, object]]] = []
        self.candidate_lists: list[tuple[tuple[str, float | None], ...]] = []
        self.decisions: list[tuple[str, str, str]] = []
        self.outcomes: list[tuple[str, OutcomeKind, Mapping[str, object]]] = []
        self.clippings: list[tuple[str, int, int]] = []
        self.notices: list[str] = []
        self.degradations: list[str] = []
        self.recoveries = 0

    def remaining(self) -> float:
        """Return the attribute `seconds`."""
        return self.seconds

    def event(self, name: str, /, **facts: object) -> None:
        """Keep an event; a name that is not `snake_case`, or a fact that is not flat, raises."""
        if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
            raise ValueError(f"an event is named in snake_case, not {name!r}")
        self.events.append((name, _checked(facts)))

    def candidates(self, scored: Iterable[tuple[str, float | None]], /) -> None:
        """Keep the candidates."""
        self.candidate_lists.append(tuple((id_, score) for id_, score in scored))

    def decision(self, gate: str, verdict: str, reason: str, /) -> None:
        """Keep the decision of a gate."""
        self.decisions.append((gate, verdict, reason))

    def outcome(self, plane: str, kind: OutcomeKind | str, /, **facts: object) -> None:
        """Keep how a write ended; an unnamed kind raises `ValueError`."""
        self.outcomes.append((plane, OutcomeKind(kind), _checked(facts)))

    def clipped(self, what: str, shown: int, total: int, /) -> None:
        """Keep a cut."""
        self.clippings.append((what, shown, total))

    def notice(self, text: str, /) -> None:
        """Keep a sentence for the user."""
        self.notices.append(text)

    def degraded(self, category: str, /) -> None:
        """Keep the category."""
        self.degradations.append(category)

    def recovered(self) -> None:
        """Count the call."""
        self.recoveries += 1


def _checked(facts: Mapping[str, object]) -> Mapping[str, object]:
    for name, fact in facts.items():
        for item in fact if isinstance(fact, list | tuple) else (fact,):
            if not isinstance(item, str | int | float | bool | Personal | None):
                raise TypeError(f"{name} is no flat fact: {type(item).__name__}")
    frozen: Mapping[str, object] = freeze(facts)
    return frozen
