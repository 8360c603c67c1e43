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


def capability_of(
    operation: Operation[Any, Any], profile: Profile, services: RuntimeServices, lacks: Mapping[str, str]
) -> Capability:
    """Return whether a memory carries out an operation.

    Args:
        operation: the operation.
        profile: of the memory.
        services: of the process.
        lacks: for each service of the open memory itself, why it is missing; empty if it is there.
    """
    if operation.name in profile.withheld:
        return Capability(visible=False, reason=f"the profile {profile.name} withholds it")
    reasons = [lacks.get(each, _lack_of(each, services)) for each in sorted(operation.services)]
    reason = ", ".join(filter(None, reasons))
    return Capability(visible=not reason, reason=reason)


def _lack_of(service: str, services: RuntimeServices) -> str:
    return "" if getattr(services, service, None) is not None else f"it needs {service}"


def capability_catalog(
    profile: Profile, services: RuntimeServices, lacks: Mapping[str, str], embedder: str | None
) -> CapabilityCatalog:
    """Return the catalogue of a memory."""
    found = {name: capability_of(each, profile, services, lacks) for name, each in OPERATIONS.items()}
    found |= {"capabilities": Capability(), "close": Capability()}
    return CapabilityCatalog(
        profile=profile.name,
        operations=dict(sorted(found.items())),
        embedder=embedder,
        vectors=profile.vectors,
        formula=profile.formula,
    )
