"""Whose memories a turn or a command may see, and where what it says is kept.

A turn with a user sees the memories of that user and those that belong to everybody of the tenant; a turn without one
sees the latter only. What is written belongs to the user, or to everybody where the host names none; only what is one's
own can be changed. In each of them only those stores are seen that the trust allows.
"""

from datetime import datetime
from hashlib import sha256
from typing import Any, Self

import attrs

from beaver_hooks_local.trust import visible_stores
from beaver_hostspecs import CommandContext, Scope, Trust, Turn
from beaver_memory.filters import Filters
from beaver_memory.records import LONGEST_TITLE, Owner, Store
from beaver_memory.texts import cleaned

_HASHED = "sha256-"


def _named(name: str | None) -> str:
    """Return a name as the store can hold it; two names that differ stay different."""
    given = name or ""
    if len(given) <= LONGEST_TITLE and cleaned(given) == given and not given.startswith(_HASHED):
        return given
    return f"{_HASHED}{sha256(given.encode('utf-8', 'surrogatepass')).hexdigest()}"


@attrs.frozen(kw_only=True)
class Sight:
    """What somebody may see.

    Attributes:
        owner: whose memories they write and may change.
        project, session, agent: where they are.
        trust: how far they are trusted.
    """

    owner: Owner
    project: str = ""
    session: str = ""
    agent: str = ""
    trust: Trust

    @classmethod
    def of_turn(cls, turn: Turn) -> Self:
        """Return what a turn may see."""
        return cls._of(turn.user, turn.scope, turn.session, turn.trust)

    @classmethod
    def of_command(cls, context: CommandContext) -> Self:
        """Return what whoever runs a command may see."""
        return cls._of(context.user, context.scope, context.session, context.trust)

    @classmethod
    def _of(cls, user: str | None, scope: Scope, session: str | None, trust: Trust) -> Self:
        owner = Owner(tenant=_named(scope.tenant), user=_named(user))
        place = {"project": _named(scope.project), "session": _named(session), "agent": _named(scope.agent)}
        return cls(owner=owner, trust=trust, **place)

    @property
    def owners(self) -> tuple[Owner, ...]:
        """Whose memories may be seen."""
        return (self.owner, Owner(tenant=self.owner.tenant)) if self.owner.user else (self.owner,)

    @property
    def stores(self) -> tuple[Store, ...]:
        """Which stores may be seen."""
        return visible_stores(self.trust)

    def filters(self, now: datetime, **more: Any) -> Filters:
        """Return what may be seen as filters; `more` narrows them; no stores or owners are added."""
        wanted = {Store(each) for each in more.pop("stores", ()) or self.stores}
        return Filters(
            owners=self.owners,
            stores=tuple(wanted & {*self.stores}),
            project=self.project,
            session=self.session,
            agent=self.agent,
            now=now,
            **more,
        )

    def own(self, now: datetime, *, lapsed: bool = False) -> Filters:
        """Return what may be changed; what has lapsed may be forgotten, and no more than that.

        What belongs to no user belongs to all of them, so a caller without an id changes it at full trust only.
        """
        stores = self.stores if self.owner.user or self.trust is Trust.FULL else ()
        return attrs.evolve(self.filters(now), owners=(self.owner,), stores=stores, lapsed=lapsed)
