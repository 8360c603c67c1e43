"""For whom a server works."""

from typing import Any

import attrs
from attrs import field
from attrs.validators import instance_of

from beaver_hooks.turns.fields import TurnFields
from beaver_hostspecs import CommandContext, Scope, Trust
from beaver_hostspecs.turns import named_or_none


@attrs.frozen(kw_only=True)
class Identity:
    """Who speaks through a server, and how far they are trusted.

    Attributes:
        user: the id of the user, or `None`.
        session: the id of the session; each connection has its own where it is `None`.
        trust: how far the user is trusted.
        scope: what the calls belong to.
    """

    user: str | None = field(default=None, validator=named_or_none)
    session: str | None = field(default=None, validator=named_or_none)
    trust: Trust = field(default=Trust.PUBLIC, converter=Trust)
    scope: Scope = field(default=Scope(), validator=instance_of(Scope))

    @property
    def fields(self) -> TurnFields:
        """What a tool's turn says about them."""
        return {"user": self.user, "trust": self.trust, "scope": self.scope}

    def context(self, session: str | None) -> CommandContext:
        """Return the context of a command."""
        known: dict[str, Any] = {**self.fields}
        return CommandContext(session=session, **known)
