"""The plugin itself."""

from collections.abc import Mapping
from typing import Any

from beaver_hostspecs import (
    Answer,
    Command,
    CommandContext,
    Contribution,
    Deadlines,
    OutcomeKind,
    PluginInfo,
    Reference,
    Report,
    Setup,
    Tool,
    Turn,
    hookimpl,
)
from beaver_tally.ledger import Ledger
from beaver_tally.settings import TallySettings

PLANE = "prompts"
"""The plane of the outcomes of this plugin."""

RULE = (
    "The plugin `tally` recalls what the user asked earlier in this session. Its tool `tally_turns` counts the turns."
)


class Tally:
    """Counts the turns of each session and recalls its last prompts."""

    def __init__(self) -> None:
        self._ledger = Ledger()
        self._limit = 0

    @hookimpl
    def describe(self) -> PluginInfo:
        """Describe the plugin. All of its work is in memory, so it declares short deadlines."""
        return PluginInfo(
            version="0.1.0",
            contract="1.0",
            summary="counts turns and recalls the last prompts of the session",
            settings=TallySettings,
            rules=(RULE,),
            deadlines=Deadlines(before_prompt=0.5, after_prompt=0.5),
        )

    @hookimpl
    def configure(self, setup: Setup) -> None:
        """Take the settings."""
        self._limit = setup.settings.recall_limit

    @hookimpl
    def provide_tools(self) -> tuple[Tool, ...]:
        """Offer the count to the model."""
        description = "Returns how many turns of this session are complete."
        parameters = {"type": "object", "properties": {}, "additionalProperties": False}
        return (Tool(name="tally_turns", description=description, parameters=parameters, run=self._count),)

    @hookimpl
    def provide_commands(self) -> tuple[Command, ...]:
        """Offer `/memory tally show` and `/memory tally forget`."""
        return (
            Command(name="show", summary="how many turns and prompts are remembered", run=self._show),
            Command(name="forget", summary="forget this session", run=self._forget),
        )

    @hookimpl
    async def before_prompt(self, turn: Turn, report: Report) -> Contribution | None:
        """Recall the last prompts of the session, the newest first."""
        prompts = self._ledger.last(turn.session, self._limit, turn.trust)
        report.candidates((f"prompt-{prompt.number}", None) for prompt in prompts)
        if not prompts:
            return None
        return Contribution(
            references=[
                Reference(kind="prompt", id=f"prompt-{each.number}", text=each.text, when=each.when) for each in prompts
            ]
        )

    @hookimpl
    async def after_prompt(self, turn: Turn, answer: Answer, report: Report) -> None:
        """Count the turn, and keep its prompt unless it repeats recalled text."""
        number = self._ledger.count(turn.session)
        if turn.was_injected(turn.prompt):
            report.decision("write", "refused", "repeats_recall")
            report.outcome(PLANE, OutcomeKind.GATED)
            return
        kept = self._ledger.keep(turn.session, turn.prompt, turn.when, turn.trust)
        kind = OutcomeKind.STORED if kept else OutcomeKind.DUPLICATE
        report.outcome(PLANE, kind, turn_number=number, answer_characters=len(answer.text))

    async def _count(self, _arguments: Mapping[str, Any], turn: Turn, _report: Report) -> dict[str, int]:
        return {"turns": self._ledger.turns(turn.session)}

    async def _show(self, _words: tuple[str, ...], context: CommandContext, _report: Report) -> str:
        if context.session is None:
            return "No session is running."
        kept = len(self._ledger.last(context.session, self._ledger.turns(context.session), context.trust))
        return f"{self._ledger.turns(context.session)} turns, {kept} prompts kept."

    async def _forget(self, _words: tuple[str, ...], context: CommandContext, report: Report) -> str:
        forgotten = 0 if context.session is None else self._ledger.forget(context.session, context.trust)
        report.event("prompts_forgotten", count=forgotten)
        return f"{forgotten} prompts forgotten."
