"""The deadline of each hook of a plugin."""

from collections.abc import Iterable

import attrs

from beaver_hooks.plugins.registry import Member

BACKGROUND = ("on_tool_result", "after_prompt", "on_turn_dropped")
"""The hooks that run in the background."""


@attrs.frozen(kw_only=True)
class HookDeadlines:
    """The deadlines that the plugins declare, within the settings of the host.

    Attributes:
        default: the seconds of a hook whose plugin declares none.
        cap: the most seconds that any hook gets.
    """

    default: float
    cap: float

    def seconds(self, member: Member, hook: str) -> float:
        """Return the deadline of a plugin's hook."""
        declared: float | None = getattr(member.info.deadlines, hook)
        return min(self.cap, declared or self.default)

    def longest_background(self, members: Iterable[Member]) -> float:
        """Return the longest deadline of the members' background hooks; 0 without members."""
        return max((self.seconds(member, hook) for member in members for hook in BACKGROUND), default=0.0)
