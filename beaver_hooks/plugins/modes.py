"""Modes are presets over registration. This table is all that the host knows of memory."""

import attrs

from beaver_hooks.config import Config, Mode

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


def with_choices(chosen: Preset, config: Config) -> Preset:
    """Return a preset with what `plugins.<name>.failClosed` says in the place of what the mode says."""
    said = config.plugins.fail_closed
    closed = {name for name, is_closed in said.items() if is_closed}
    return attrs.evolve(chosen, fail_closed=frozenset((chosen.fail_closed - said.keys()) | closed))


def preset_of(config: Config) -> Preset:
    """Return what the mode and the configuration decide."""
    return with_choices(preset(config.mode, explicit=config.explicit), config)
