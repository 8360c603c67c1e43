"""The configuration as an object: modes, sections, and who reads them."""

import attrs
import pytest

from beaver_hooks.config import Config, HostSettings, is_section_path, parse_config, read_config
from beaver_hostspecs import ConfigurationError, Secret
from beaver_hostspecs.distributions import install_command
from beaver_hostspecs.settings import between, setting


def problem(text: str) -> str:
    with pytest.raises(ConfigurationError) as caught:
        parse_config(text)
    return str(caught.value)


def unclaimed(text: str, **known) -> str | None:
    try:
        parse_config(text).check_sections(**{"claimed": {}, **known})
    except ConfigurationError as error:
        return str(error)
    return None


@pytest.mark.shows("000-030", "000-124", "001-096")
def test_defaults():
    """An empty file is the defaults, in the implicit hybrid mode."""
    config = parse_config("{}")

    assert config == Config()
    assert config.host == HostSettings()
    assert (config.mode, config.explicit, config.section("memory.gateway")) == ("hybrid", False, None)


@pytest.mark.shows("000-010", "000-043", "001-020")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"memory": null}', ("hybrid", False)),
        ('{"memory": {}}', ("hybrid", False)),
        ('{"memory": {"mode": "hybrid"}}', ("hybrid", True)),
        ('{"memory": {"mode": "memory_gateway"}}', ("memory_gateway", True)),
        ('{"$schema": "x", "memory": {"mode": "curated"}}', ("curated", True)),
    ],
)
def test_mode(text, expected):
    """A mode is explicit exactly when the file names it."""
    config = parse_config(text)

    assert (config.mode, config.explicit) == expected


@pytest.mark.shows("000-028", "000-129", "001-021")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"memory": {"mode": null}}', "memory.mode: must be one of `curated`, `hybrid`, `memory_gateway`"),
        ('{"memory": {"modee": "hybrid"}}', "memory.modee: must be an object (did you mean `mode`?)"),
        ('{"memory": {"gateway": []}}', "memory.gateway: must be an object"),
        ('{"memmory": {}}', "memmory: is not a setting (did you mean `memory`?)"),
        ('{"plugins": {"tally": 5}}', "plugins.tally: must be an object"),
        ('{"plugins": {"tally": {"failClosed": 1}}}', "plugins.tally.failClosed: must be true or false"),
        ('{"plugins": {"disabled": ["a", "a"]}}', "plugins.disabled: must not name anything twice"),
        ('{"host": {"queuelimit": 5}}', "host.queuelimit: is not a setting (did you mean `queueLimit`?)"),
        ('{"host": {"deadlineCapSeconds": 0}}', "host.deadlineCapSeconds: must be a number above 0"),
        ('{"$schema": 5}', "$schema: must be a string"),
    ],
)
def test_refusals(text, expected):
    """The host's own sections refuse a wrong value with its path."""
    assert problem(text) == expected


def test_sections_are_kept_raw_and_out_of_sight():
    """Sections of plugins are had by path, and no repr shows them."""
    config = parse_config('{"memory": {"gateway": {"apiKey": "canary"}}, "plugins": {"a.b": {"c": [1]}}}')

    assert config.section("memory.gateway") == {"apiKey": "canary"}
    assert config.section("plugins.a.b") == {"c": (1,)}
    assert "canary" not in repr(config)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("memory.gateway", True),
        ("plugins.tally", True),
        ("memory.mode", False),
        ("plugins.disabled", False),
        ("plugins.", False),
        ("memory", False),
        ("host.tally", False),
    ],
)
def test_is_section_path(path, expected):
    """A plugin may keep settings under `memory` and `plugins`, but not where the host has its own."""
    assert is_section_path(path) is expected


@attrs.frozen(kw_only=True)
class Mottos:
    most: int = setting(default=5, validator=between(1, 9))
    token: Secret | None = None


@pytest.mark.shows("000-011", "000-118")
def test_settings():
    """A plugin's settings come from its section, or are its defaults without a section."""
    config = parse_config('{"plugins": {"mottos": {"most": 3, "token": {"env": "TOKEN"}}}}')
    environment = {"TOKEN": "a token of some length"}

    assert config.settings(Mottos, "plugins.mottos", environment=environment) == Mottos(
        most=3, token=Secret("a token of some length")
    )
    assert config.settings(Mottos, "plugins.other", environment=environment) == Mottos()


def test_errors_name_the_file(tmp_path):
    """An error about a section names the configuration's file and the path of the field."""
    path = tmp_path / "config.json"
    path.write_text('{"plugins": {"mottos": {"most": 10}}}')
    config = read_config(path)

    with pytest.raises(ConfigurationError) as unread:
        config.check_sections(claimed={})
    with pytest.raises(ConfigurationError) as unfit:
        config.settings(Mottos, "plugins.mottos", environment={})

    assert [(each.value.path, str(each.value), each.value.__context__) for each in (unread, unfit)] == [
        ("plugins.mottos", f"plugins.mottos: no plugin of that name is installed (in {path})", None),
        ("plugins.mottos.most", f"plugins.mottos.most: must be between 1 and 9 (in {path})", None),
    ]


GATEWAY = '{"memory": {"gateway": {}}}'
TALLY = '{"plugins": {"tally": {}}}'


@pytest.mark.shows("000-034")
@pytest.mark.parametrize(
    ("text", "known", "expected"),
    [
        ("{}", {}, None),
        (GATEWAY, {"claimed": {"memory.gateway": "gateway"}, "installed": ["gateway"]}, None),
        (GATEWAY, {"ignored": ["gateway"]}, None),
        ('{"memory": {"local": {}}, "plugins": {"disabled": ["local"]}}', {}, None),
        (
            '{"memory": {"local": {}}}',
            {},
            f"memory.local: no plugin named `local` is installed; run: {install_command('beaver-hooks-local')}",
        ),
        ('{"memory": {"gatway": {}}}', {}, "memory.gatway: is not a setting (did you mean `gateway`?)"),
        (
            '{"memory": {"mine": {}}}',
            {"claimed": {"memory.mime": "x"}},
            "memory.mine: is not a setting (did you mean `mime`?)",
        ),
        (
            '{"memory": {"qqqq": {}}}',
            {},
            "memory.qqqq: is not a setting; the settings are `mode`, `curated`, `gateway`, `local`, `server`",
        ),
        (TALLY, {"claimed": {"plugins.tally": "tally"}}, None),
        (
            TALLY,
            {"installed": ["taly"]},
            "plugins.tally: no plugin of that name is installed (did you mean `taly`?)",
        ),
        (TALLY, {"installed": ["tally"]}, "plugins.tally: the plugin `tally` has no settings"),
        ('{"plugins": {"tally": {"failClosed": true}}}', {"installed": ["tally"]}, None),
        ('{"plugins": {"tally": {"failClosed": true}}}', {"ignored": ["tally"]}, None),
        (
            '{"plugins": {"tally": {"failClosed": true}}}',
            {"installed": ["taly"]},
            "plugins.tally: no plugin of that name is installed (did you mean `taly`?)",
        ),
        (
            '{"plugins": {"gateway": {"failClosed": true, "x": 1}}}',
            {"claimed": {"memory.gateway": "gateway"}, "installed": ["gateway"]},
            "plugins.gateway: the settings of the plugin `gateway` belong in `memory.gateway`",
        ),
        (
            '{"plugins": {"gateway": {}}}',
            {"claimed": {"memory.gateway": "gateway"}, "installed": ["gateway"]},
            "plugins.gateway: the settings of the plugin `gateway` belong in `memory.gateway`",
        ),
        (
            '{"plugins": {"sk-0123456789": {}}}',
            {},
            "plugins.[?]: no plugin of that name is installed",
        ),
    ],
)
def test_check_sections(text, known, expected):
    """An unread section is refused with the probable name or the package to install; ignored plugins keep theirs."""
    assert unclaimed(text, **known) == expected
