"""The catalogue of the operations of a memory, for hosts and transports."""

from collections.abc import Mapping
from typing import Any

import attrs
from attrs import field

from beaver_memory.runtime.profile import Profile, RuntimeServices
from beaver_memory.runtime.table import OPERATIONS, Operation


@attrs.frozen(kw_only=True)
class Capability:
    """One operation.

    Attributes:
        visible: whether this memory carries it out.
        reason: why not; empty if it is visible.
    """

    visible: bool = True
    reason: str = ""


@attrs.frozen(kw_only=True)
class CapabilityCatalog:
    """The operations of a memory, and how it finds memories.

    Attributes:
        profile: the name of its profile.
        operations: each operation by its name.
        embedder: the configured embedder; `None` for searches by words alone.
        vectors: what finds the nearest vectors.
        formula: the formula of ranking.
    """

    profile: str
    operations: Mapping[str, Capability] = field(factory=dict)
    embedder: str | None = None
    vectors: str
    formula: str

    def __getattr__(self, name: str) -> Capability:
        """Return an operation by its name, as in `capabilities.write.visible`."""
        try:
            return self.operations[name]
        except KeyError:
            raise AttributeError(name) from None


def capability_of(operation: Operation[Any, Any], profile: Profile, services: RuntimeServices) -> Capability:
    """Return whether a memory with this profile and these services carries out an operation."""
    missing = sorted(each for each in operation.services if getattr(services, each, None) is None)
    if operation.name in profile.withheld:
        return Capability(visible=False, reason=f"the profile {profile.name} withholds it")
    return Capability(visible=False, reason=f"it needs {', '.join(missing)}") if missing else Capability()


def capability_catalog(profile: Profile, services: RuntimeServices, embedder: str | None) -> CapabilityCatalog:
    """Return the catalogue of a memory."""
    found = {name: capability_of(each, profile, services) for name, each in OPERATIONS.items()}
    found |= {"capabilities": Capability(), "close": Capability()}
    return CapabilityCatalog(
        profile=profile.name,
        operations=dict(sorted(found.items())),
        embedder=embedder,
        vectors=profile.vectors,
        formula=profile.formula,
    )
