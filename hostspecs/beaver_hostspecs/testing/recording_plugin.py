"""A well-behaved plugin that records its calls."""

from collections.abc import Iterable

from beaver_hostspecs.contributions import Contribution
from beaver_hostspecs.plugins import Command, PluginInfo, Tool
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
        self.info = info or PluginInfo(version="0", contract="1.1")

    def answer_now(self, call: Call) -> object:
        """Return this plugin's answer of the hook."""
        answers = {"describe": self.info, "provide_tools": self.tools, "provide_commands": self.commands}
        return answers.get(call.hook)

    async def answer(self, call: Call) -> object:
        """Return the contribution to `before_prompt`, and `None` to the other hooks."""
        return self.contribution if call.hook == "before_prompt" else None
