"""The memories that a turn or a command may see, and the owner of those that it writes: the door where views are made.

A turn with a user sees the memories of that user and those that all users of the tenant share; a turn without a user
sees the shared ones only. A new memory belongs to the user, or to all users if the host names none; a caller changes
only its own. Of both, a caller sees only the stores that its trust allows. The tenant and the project are those of the
configuration; a turn may name a tenant within that one, and another project.
"""

from datetime import datetime
from hashlib import sha256
from typing import Any, Protocol, Self

import attrs

from beaver_hooks_local.trust import visible_stores
from beaver_hostspecs import CommandContext, Compaction, Scope, Trust, Turn
from beaver_memory.filters import Filters
from beaver_memory.records import LONGEST_TITLE, Owner, Store
from beaver_memory.texts import cleaned
from beaver_memory.views import Project, View, stored, tenant_within

_HASHED = "sha256-"


class Home(Protocol):
    """The tenant and the project of a process."""

    @property
    def tenant(self) -> str:
        """The tenant; empty for none."""

    @property
    def project(self) -> str | None:
        """The name of the project; `None` outside of any."""


def _named(name: str | None) -> str:
    """Return a name in a form that the store can hold; two names that differ stay different."""
    given = name or ""
    if len(given) <= LONGEST_TITLE and cleaned(given) == given and not given.startswith(_HASHED):
        return given
    return f"{_HASHED}{sha256(given.encode('utf-8', 'surrogatepass')).hexdigest()}"


@attrs.frozen(kw_only=True)
class Visibility:
    """The memories that a caller may see.

    Attributes:
        owner: of the memories that the caller writes and may change.
        project, session, agent: of the caller.
        trust: the caller's level of trust.
    """

    owner: Owner
    project: Project = None
    session: str = ""
    agent: str = ""
    trust: Trust

    @classmethod
    def of_turn(cls, turn: Turn, home: Home) -> Self:
        """Return the sight of a turn in a process."""
        return cls._of(home, turn.user, turn.scope, turn.session, turn.trust)

    @classmethod
    def of_compaction(cls, compaction: Compaction, home: Home) -> Self:
        """Return the sight of the caller of a compaction."""
        return cls._of(home, compaction.user, compaction.scope, compaction.session, compaction.trust)

    @classmethod
    def of_command(cls, context: CommandContext, home: Home) -> Self:
        """Return the sight of the user of a command."""
        return cls._of(home, context.user, context.scope, context.session, context.trust)

    @classmethod
    def _of(cls, home: Home, user: str | None, scope: Scope, session: str | None, trust: Trust) -> Self:
        tenant = tenant_within(home.tenant, _named(scope.tenant))
        return cls(
            owner=Owner(tenant=_named(tenant), user=_named(user)),
            project=_named(scope.project) or home.project,
            session=_named(session),
            agent=_named(scope.agent),
            trust=trust,
        )

    @property
    def owners(self) -> tuple[Owner, ...]:
        """The owners whose memories the caller may see."""
        return (self.owner, Owner(tenant=self.owner.tenant)) if self.owner.user else (self.owner,)

    @property
    def stores(self) -> tuple[Store, ...]:
        """The stores that the caller may see."""
        return visible_stores(self.trust)

    def filters(self, now: datetime, **more: Any) -> Filters:
        """Return the view of the caller; `more` are conditions, which narrow it and add no stores."""
        wanted = {Store(each) for each in more.pop("stores", ()) or self.stores}
        return Filters(
            view=View(
                owners=self.owners,
                stores=tuple(wanted & {*self.stores}),
                project=self.project,
                session=self.session,
                agent=self.agent,
                now=now,
            ),
            **more,
        )

    @property
    def place(self) -> str:
        """The project of the memories that the caller writes, by name; empty outside of any."""
        return stored(self.project) or ""

    def own(self, now: datetime, *, lapsed: bool = False) -> Filters:
        """Return filters for the memories that the caller may change; `lapsed` adds lapsed ones, only to forget them.

        A memory without a user belongs to all users, so a caller without an id changes it at full trust only.
        """
        stores = self.stores if self.owner.user or self.trust is Trust.FULL else ()
        return self.filters(now, lapsed=lapsed).within(owners=(self.owner,), stores=stores)
