"""Decides what a caller may use: memory may be off for the caller, and a tool or command may need more trust."""

import asyncio
import time
from typing import TypeVar

import attrs

from beaver_hooks.plugins.registry import Member
from beaver_hooks.receipts.recorder import Recorder
from beaver_hooks.turns.switch import MemorySwitch
from beaver_hostspecs import Caller, Command, NotAllowed, Tool

Offer = TypeVar("Offer", Tool, Command)

OFF = "memory is off for this session or user; `/memory on` or `beaver memory on` switches it on again"


@attrs.frozen(kw_only=True)
class Admission:
    """Decides which tools and commands a caller may use.

    Attributes:
        switch: the users and sessions whose memory is off.
        recorder: records plugins whose `allows` fails.
        blocked_after: how many seconds `allows` may take; it runs on the event loop and cannot be interrupted.
    """

    switch: MemorySwitch
    recorder: Recorder
    blocked_after: float
    _blocking: set[tuple[Member, str]] = attrs.field(factory=set, init=False)

    def is_off(self, caller: Caller) -> bool:
        """Whether memory is off for a caller."""
        return self.switch.is_off(caller.user, caller.session)

    async def switch_memory(self, session: str | None, user: str | None, *, on: bool) -> None:
        """Switch memory on or off in a session of a user, or in all sessions of the user.

        Raises:
            AuditUnavailable: the switch cannot be written.
        """
        await asyncio.to_thread(self.switch.turn, user, session, off=not on)
        self.recorder.event("memory_switched", {"on": on, "whole_user": session is None})

    def allowed(self, member: Member, offers: tuple[Offer, ...], caller: Caller) -> tuple[Offer, ...]:
        """Return the tools or commands of a plugin that a caller may use; none while memory is off."""
        if self.is_off(caller):
            return ()
        return tuple([each for each in offers if self._allows(member, each, caller)])

    def withheld(self, member: Member, caller: Caller) -> tuple[str, ...]:
        """Return the names of the tools that the caller's trust does not allow."""
        return tuple([each.name for each in member.tools if not self._allows(member, each, caller)])

    def check(self, member: Member, offer: Offer, caller: Caller) -> None:
        """Raise unless a caller may use a tool or a command.

        Raises:
            NotAllowed: memory is off, or the caller's trust is too low.
        """
        self.check_switch(caller)
        if not self._allows(member, offer, caller):
            what = "tool" if isinstance(offer, Tool) else "command"
            raise NotAllowed(
                f"the {what} `{offer.name}` of the plugin `{member.name}` is not allowed for the trust"
                f" `{caller.trust}`",
                plugin=member.name,
            )

    def check_switch(self, caller: Caller) -> None:
        """Raise while memory is off for a caller.

        Raises:
            NotAllowed: memory is off.
        """
        if self.is_off(caller):
            raise NotAllowed(OFF)

    def _allows(self, member: Member, offer: Tool | Command, caller: Caller) -> bool:
        """Return the plugin's decision; an error counts as `False`, and a slow `allows` is never called again."""
        hook = f"{'tool' if isinstance(offer, Tool) else 'command'}:{offer.name}"
        if (member, hook) in self._blocking:
            return False
        began = time.monotonic()
        try:
            allowed = offer.allows(caller) is True
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - a plugin's code; the error is recorded
            self.recorder.failed(member.name, hook=hook, category="raised", error=error)
            allowed = False
        if time.monotonic() - began > self.blocked_after:
            self._blocking.add((member, hook))
            self.recorder.failed(member.name, hook=hook, category="blocked")
            return False
        return allowed
