"""Decides what a caller may use: memory may be off for them, and a tool or command may want more trust."""

from typing import TypeVar

import attrs

from beaver_hooks.record.recorder import Recorder
from beaver_hooks.registry.registry import Member
from beaver_hooks.turns.switch import MemorySwitch
from beaver_hostspecs import Caller, Command, NotAllowed, Tool

Offer = TypeVar("Offer", Tool, Command)

OFF = "memory is off here; `/memory on` or `beaver memory on` switches it on again"


@attrs.frozen(kw_only=True)
class Admission:
    """Who may use what."""

    switch: MemorySwitch
    recorder: Recorder

    def is_off(self, caller: Caller) -> bool:
        """Whether memory is off for a caller."""
        return self.switch.is_off(caller.user, caller.session)

    def allowed(self, member: Member, offers: tuple[Offer, ...], caller: Caller) -> tuple[Offer, ...]:
        """Return the tools or commands of a plugin that a caller may use; none while memory is off."""
        if self.is_off(caller):
            return ()
        return tuple([each for each in offers if self._allows(member, each, caller)])

    def withheld(self, member: Member, caller: Caller) -> tuple[str, ...]:
        """Return the names of the tools that the trust of a caller leaves out."""
        return tuple([each.name for each in member.tools if not self._allows(member, each, caller)])

    def check(self, member: Member, offer: Offer, caller: Caller) -> None:
        """Raise unless a caller may use a tool or a command.

        Raises:
            NotAllowed: memory is off, or the caller's trust is not enough.
        """
        self.check_switch(caller)
        if not self._allows(member, offer, caller):
            what = "tool" if isinstance(offer, Tool) else "command"
            raise NotAllowed(
                f"the {what} `{offer.name}` of `{member.name}` is not for a caller of trust `{caller.trust}`",
                plugin=member.name,
            )

    def check_switch(self, caller: Caller) -> None:
        """Raise while memory is off for a caller.

        Raises:
            NotAllowed: it is.
        """
        if self.is_off(caller):
            raise NotAllowed(OFF)

    def _allows(self, member: Member, offer: Tool | Command, caller: Caller) -> bool:
        """Ask the plugin; one that fails to answer allows nothing."""
        try:
            return offer.allows(caller) is True
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - a plugin's code; it is written down
            kind = "tool" if isinstance(offer, Tool) else "command"
            self.recorder.failed(member.name, hook=f"{kind}:{offer.name}", category="raised", error=error)
            return False
