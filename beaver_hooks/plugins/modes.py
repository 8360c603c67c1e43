"""The memory modes, which are presets over registration. The host knows nothing else of memory."""

from collections.abc import Collection

import attrs

from beaver_hooks.config import Config, Mode
from beaver_hooks.options import Options

NOBODY: frozenset[str] = frozenset()


@attrs.frozen(kw_only=True)
class Preset:
    """The decisions of a mode.

    Attributes:
        blocked: plugins that are never imported.
        required: plugins without which loading fails.
        fail_closed: plugins whose failure in `before_prompt` stops the turn.
    """

    blocked: frozenset[str] = NOBODY
    required: frozenset[str] = NOBODY
    fail_closed: frozenset[str] = NOBODY


def preset(mode: Mode, *, explicit: bool) -> Preset:
    """Return the preset of `mode`; an implicit hybrid does not require the gateway."""
    curated = frozenset({"curated"})
    if mode == "curated":
        return Preset(blocked=frozenset({"gateway"}), required=curated, fail_closed=curated)
    if mode == "memory_gateway":
        return Preset(blocked=curated | {"local"}, required=frozenset({"gateway"}))
    return Preset(required=curated | {"gateway"} if explicit else curated, fail_closed=curated)


def with_choices(chosen: Preset, config: Config) -> Preset:
    """Return a preset in which `plugins.<name>.failClosed` overrides the mode."""
    said = config.plugins.fail_closed
    closed = {name for name, is_closed in said.items() if is_closed}
    return attrs.evolve(chosen, fail_closed=frozenset((chosen.fail_closed - said.keys()) | closed))


def preset_of(config: Config) -> Preset:
    """Return the preset of the mode, with the choices of the configuration."""
    return with_choices(preset(config.mode, explicit=config.explicit), config)


def preset_for(options: Options) -> Preset:
    """Return the preset of a host: of its mode, or of the plugins that it names, with its fail-closed plugins."""
    named = options.entry_points
    chosen = preset_of(options.config) if named is None else with_choices(Preset(required=named), options.config)
    return attrs.evolve(chosen, fail_closed=chosen.fail_closed | options.fail_closed)


@attrs.frozen(kw_only=True)
class Plan:
    """The plugins to load.

    Attributes:
        names: the entry points to load, in order: required ones first, then by name.
        missing: required plugins that are not installed.
        disabled: plugins that are left out, with the reason.
        preset: the required and the fail-closed plugins.
        mode: the memory mode, or `None` for a host without one.
    """

    names: tuple[str, ...]
    missing: tuple[str, ...]
    disabled: dict[str, str]
    preset: Preset
    mode: str | None = None


def make_plan(*, installed: Collection[str], preset: Preset, disabled: Collection[str], mode: str | None) -> Plan:
    """Return the plan: all installed plugins except those that the mode blocks or the configuration disables."""
    left_out = {name: f"the memory mode `{mode}` blocks it" for name in preset.blocked if name in installed}
    left_out |= dict.fromkeys(disabled, "`plugins.disabled` names it")
    wanted = [name for name in installed if name not in left_out]
    return Plan(
        names=tuple(sorted(wanted, key=lambda name: (name not in preset.required, name))),
        missing=tuple(sorted(preset.required - set(wanted))),
        disabled=left_out,
        preset=preset,
        mode=mode,
    )
