"""Modes are presets over registration. This table is all that the host knows of memory."""

import attrs

from beaver_hooks.config import Mode

NOBODY: frozenset[str] = frozenset()


@attrs.frozen(kw_only=True)
class Preset:
    """What a mode decides.

    Attributes:
        blocked: plugins that are never imported.
        required: plugins without which loading fails.
        fail_closed: plugins whose failure in `before_prompt` stops the turn.
    """

    blocked: frozenset[str] = NOBODY
    required: frozenset[str] = NOBODY
    fail_closed: frozenset[str] = NOBODY


def preset(mode: Mode, *, explicit: bool) -> Preset:
    """Return what `mode` decides; an implicit hybrid forgives a gateway that is not there."""
    curated = frozenset({"curated"})
    if mode == "curated":
        return Preset(blocked=frozenset({"gateway"}), required=curated, fail_closed=curated)
    if mode == "memory_gateway":
        return Preset(blocked=curated | {"local"}, required=frozenset({"gateway"}))
    return Preset(required=curated | {"gateway"} if explicit else curated, fail_closed=curated)
