"""The deadline of each hook of a plugin."""

from collections.abc import Iterable

import attrs

from beaver_hooks.config.model import HostSettings
from beaver_hooks.plugins.registry import Member

BACKGROUND = ("on_tool_result", "after_prompt", "on_turn_dropped")
"""The hooks that run in the background."""


@attrs.frozen
class HookDeadlines:
    """The deadlines that the plugins declare, within the settings of the host.

    Attributes:
        settings: those of the host, with the default and the longest deadline.
    """

    settings: HostSettings

    def seconds(self, member: Member, hook: str) -> float:
        """Return the deadline of a plugin's hook."""
        declared: float | None = getattr(member.info.deadlines, hook)
        return min(self.settings.deadline_cap_seconds, declared or self.settings.default_deadline_seconds)

    @property
    def offer_seconds(self) -> float:
        """The deadline of a tool or a command."""
        return min(self.settings.deadline_cap_seconds, self.settings.default_deadline_seconds)

    def longest_background(self, members: Iterable[Member]) -> float:
        """Return the longest deadline of the members' background hooks; 0 without members."""
        return max((self.seconds(member, hook) for member in members for hook in BACKGROUND), default=0.0)
