"""Decides which plugins to load, before any plugin is imported."""

from collections.abc import Collection

import attrs

from beaver_hooks.plugins.modes import Preset


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
