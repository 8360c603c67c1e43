"""The mode table, and the plan of plugins that follows from it."""

import pytest

from beaver_hooks.plugins.modes import Plan, Preset, make_plan, preset

CURATED = frozenset({"curated"})
GATEWAY = frozenset({"gateway"})
TABLE = [
    ("curated", True, Preset(blocked=GATEWAY, required=CURATED, fail_closed=CURATED)),
    ("hybrid", True, Preset(required=CURATED | GATEWAY, fail_closed=CURATED)),
    ("hybrid", False, Preset(required=CURATED, fail_closed=CURATED)),
    ("memory_gateway", True, Preset(blocked=CURATED | {"local"}, required=GATEWAY)),
]


@pytest.mark.shows("000-029", "000-032", "000-110", "001-001", "001-018")
@pytest.mark.parametrize(("mode", "explicit", "expected"), TABLE)
def test_the_mode_table(mode, explicit, expected):
    """Each mode has the blocked, required and fail-closed plugins of the design."""
    assert preset(mode, explicit=explicit) == expected


def test_the_plan_loads_required_plugins_first():
    """Required plugins come first, the others by name; blocked and disabled plugins are left out with the reason."""
    chosen = preset("curated", explicit=True)

    plan = make_plan(
        installed=["zebra", "gateway", "local", "curated", "ant"], preset=chosen, disabled=["local"], mode="curated"
    )

    assert plan == Plan(
        names=("curated", "ant", "zebra"),
        missing=(),
        disabled={"gateway": "the memory mode `curated` blocks it", "local": "`plugins.disabled` names it"},
        preset=chosen,
        mode="curated",
    )


def test_a_required_plugin_that_is_disabled_is_missing():
    """Disabling wins over requiring, so that loading fails instead of going on without; absent blocked ones are no news."""
    chosen = preset("memory_gateway", explicit=True)

    plan = make_plan(installed=["gateway"], preset=chosen, disabled=["gateway", "absent"], mode="memory_gateway")

    reason = "`plugins.disabled` names it"
    assert plan == Plan(
        names=(),
        missing=("gateway",),
        disabled={"gateway": reason, "absent": reason},
        preset=chosen,
        mode="memory_gateway",
    )
