"""The identity that a server serves."""

from typing import Any

import attrs
from attrs import field
from attrs.validators import instance_of

from beaver_hooks.turns.fields import TurnFields
from beaver_hostspecs import CommandContext, Scope, Trust
from beaver_hostspecs.turns import named_or_none


@attrs.frozen(kw_only=True)
class Identity:
    """The user of a server, and the trust in them.

    Attributes:
        user: the id of the user, or `None`.
        session: the id of the session; with `None` each connection has its own.
        trust: the trust in the user.
        scope: the scope of the calls.
    """

    user: str | None = field(default=None, validator=named_or_none)
    session: str | None = field(default=None, validator=named_or_none)
    trust: Trust = field(default=Trust.PUBLIC, converter=Trust)
    scope: Scope = field(default=Scope(), validator=instance_of(Scope))

    @property
    def fields(self) -> TurnFields:
        """The fields of a tool's turn that identify the user."""
        return {"user": self.user, "trust": self.trust, "scope": self.scope}

    def context(self, session: str | None) -> CommandContext:
        """Return the context of a command."""
        known: dict[str, Any] = {**self.fields}
        return CommandContext(session=session, **known)
