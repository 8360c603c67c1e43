"""What a host is made with, and how it refuses what cannot work."""

import pytest

from beaver_hooks import Host, SyncHost
from beaver_hooks.arguments import make_options
from beaver_hooks.config import Config
from beaver_hooks.plugins.modes import Preset, preset_for
from beaver_hostspecs import HostMisused, Services
from beaver_hostspecs.testing import FrozenClock, RecordingPlugin


def _text():
    return "0123456789abcdef"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"plugins": ["p"]}, "`plugins` takes a mapping of names to plugin objects; it was given a list"),
        ({"plugins": {7: object()}}, "`plugins` takes a mapping of names to plugin objects; it was given a dict"),
        (
            {"entry_points": "taly"},
            "`entry_points` takes names of plugins, for example a list of them; it was given a str",
        ),
        ({"entry_points": 7}, "`entry_points` takes names of plugins, for example a list of them; it was given a int"),
        ({"entry_points": [7]}, "`entry_points` takes names, each of them a str; it was given a list"),
        (
            {"fail_closed": "tally"},
            "`fail_closed` takes names of plugins, for example a list of them; it was given a str",
        ),
        (
            {"plugins": {"p": None}, "entry_points": ["q"], "fail_closed": ["p", "r"]},
            "`fail_closed` names `r`, which is not a plugin of this host; its plugins are: `p`, `q`",
        ),
        (
            {"fail_closed": ["r"]},
            "`fail_closed` names `r`, which is not a plugin of this host; its plugins are: none",
        ),
        (
            {"config": {"host": {}}},
            "`config` takes a `Config`; `Host.from_config(path)` reads a file; it was given a dict",
        ),
        ({"state_folder": 7}, "`state_folder` takes a path; it was given a int"),
        ({"person_folder": 7}, "`person_folder` takes a path; it was given a int"),
        ({"services": {}}, "`services` takes a `Services`; it was given a dict"),
        ({"sinks": [object()]}, "`sinks` takes audit sinks, each with `append(event)`; it was given a object"),
        ({"sinks": 7}, "`sinks` takes audit sinks, for example a list of them; it was given a int"),
        ({"clock": FrozenClock}, "`clock` takes a clock; it was given a type"),
        ({"boundary": "fence"}, "`boundary` takes a function; it was given a str"),
        ({"environment": 7}, "`environment` takes a `Mapping`; it was given a int"),
    ],
)
def test_what_cannot_work_is_refused(options, expected):
    """The sentence names the argument and what it takes, with a loop and without one."""
    said = []
    for kind in (Host, SyncHost):
        with pytest.raises(HostMisused) as caught:
            kind(
                **{("host" if kind is SyncHost and name == "plugins" else name): each for name, each in options.items()}
            )
        said.append(str(caught.value))

    assert [expected] * 2 == said


def test_a_path_that_is_none_is_refused():
    """A configuration is read from a path."""
    with pytest.raises(HostMisused) as caught:
        Host.from_config(7)

    assert "`path` takes a path; it was given a int" == str(caught.value)


def test_what_is_given_is_taken(tmp_path):
    """Every argument arrives, and what the caller changes later is the caller's alone."""
    plugins, clock, config, services = {"p": RecordingPlugin()}, FrozenClock(), Config(), Services()
    given = {"config": config, "services": services, "clock": clock, "boundary": _text, "environment": {"A": "b"}}
    options = make_options(
        plugins=plugins,
        entry_points=iter(["q"]),
        fail_closed=["q"],
        state_folder=str(tmp_path),
        person_folder=None,
        sinks=iter([]),
        **given,
    )
    expected = dict(plugins)
    plugins.clear()

    assert given == {name: getattr(options, name) for name in given}
    assert (expected, {"q"}, {"q"}) == (options.plugins, options.entry_points, options.fail_closed)
    assert Preset(required=frozenset({"q"}), fail_closed=frozenset({"q"})) == preset_for(options)
    assert (None, tmp_path, tmp_path) == (options.mode, options.state_folder, options.person_folder)
    assert () == options.sinks
