"""Renamed settings: the old name works, is reported with the new one, and never stands beside it."""

import logging
from collections.abc import Mapping

import attrs
import pytest

from beaver_hooks import Host
from beaver_hooks.config import Config, parser
from beaver_hooks.config.converter import structure
from beaver_hooks.config.effective import effective
from beaver_hooks.config.entries import entries_of
from beaver_hooks.config.model import HostSettings
from beaver_hooks.config.parser import build_config
from beaver_hooks.config.renames import Renamed, renamed_in
from beaver_hooks.config.schema import config_schema
from beaver_hostspecs import ConfigurationError, PluginInfo, Secret, hookimpl
from beaver_hostspecs.settings import between, setting


@attrs.frozen(kw_only=True)
class Line:
    """One object of a list."""

    words: str = setting(default="", was="text")


@attrs.frozen(kw_only=True)
class Settings:
    """A plugin's settings, of which most had other names."""

    most_per_turn: int = setting(default=2, help="how many", validator=between(1, 10), was=("limit", "most"))
    token: Secret | None = setting(default=None, was="apiKey")
    name: str = setting(was="title")
    line: Line = setting(default=Line(), was="row")
    lines: tuple[Line, ...] = setting(default=())
    named: Mapping[str, Line] = setting(default=attrs.Factory(dict))


@attrs.frozen(kw_only=True)
class OldHost(HostSettings):
    """The section `host` with one more setting that was renamed."""

    slow_after_seconds: float = setting(default=1.0, was="slowSeconds")


@attrs.frozen(kw_only=True)
class OldConfig(Config):
    """A configuration with that section."""

    host: OldHost = setting(default=OldHost())


@pytest.fixture
def old_host(monkeypatch):
    """Give the host a setting that was renamed."""
    monkeypatch.setattr(parser, "Config", OldConfig)


def made(value):
    return structure(Settings, value, "plugins.p", environment={"TOKEN": "t0ken"})


def problem(value):
    with pytest.raises(ConfigurationError) as raised:
        made(value)
    return raised.value.path, raised.value.problem


def test_old_names_take_effect():
    """Every one of them, in objects and lists too, and as it would under the new name."""
    old = {"most": 3, "apiKey": {"env": "TOKEN"}, "title": "a", "row": {"text": "b"}, "lines": [{"text": "c"}],
           "named": {"x": {"text": "d"}}}  # fmt: skip
    new = {"mostPerTurn": 3, "token": {"env": "TOKEN"}, "name": "a", "line": {"words": "b"},
           "lines": [{"words": "c"}], "named": {"x": {"words": "d"}}}  # fmt: skip

    assert made(new) == made(old)
    assert (
        Renamed(old="plugins.p.most", new="plugins.p.mostPerTurn"),
        Renamed(old="plugins.p.apiKey", new="plugins.p.token"),
        Renamed(old="plugins.p.title", new="plugins.p.name"),
        Renamed(old="plugins.p.row", new="plugins.p.line"),
        Renamed(old="plugins.p.row.text", new="plugins.p.row.words"),
        Renamed(old="plugins.p.lines[0].text", new="plugins.p.lines[0].words"),
        Renamed(old="plugins.p.named.x.text", new="plugins.p.named.x.words"),
    ) == renamed_in(Settings, old, "plugins.p")
    assert () == renamed_in(Settings, new, "plugins.p")


@pytest.mark.parametrize(
    ("value", "path", "said"),
    [
        ({"name": "a", "limit": 3, "mostPerTurn": 3}, "limit", "is an old name of `mostPerTurn`, which is given too"),
        ({"name": "a", "limit": 3, "most": 3}, "most", "is an old name of `limit`, which is given too"),
        ({"name": "a", "limit": 30}, "limit", "must be between 1 and 10"),
        ({"name": "a", "limit": "3"}, "limit", "must be an integer"),
        ({"limit": 3}, "name", "is missing"),
        ({"name": "a", "limits": 3}, "limits", "is not a setting"),
    ],
)
def test_what_is_refused(value, path, said):
    """Two names for one setting, which error names; a wrong value is named as it is in the file."""
    found = problem(value)

    assert (f"plugins.p.{path}", said) == (found[0], found[1][: len(said)])


def test_the_schema_marks_old_names():
    """An editor takes the old name, strikes it through, and misses no new one that may be given under it."""
    properties = config_schema({"plugins.p": Settings})["properties"]["plugins"]["properties"]["p"]

    old = {
        "type": "integer",
        "minimum": 1,
        "maximum": 10,
        "description": "the old name of mostPerTurn",
        "deprecated": True,
    }
    assert [old, old] == [properties["properties"][name] for name in ("limit", "most")]
    assert (2, None) == (properties["properties"]["mostPerTurn"]["default"], properties.get("required"))


def test_what_is_shown_of_them():
    """A credential stays hidden under an old name, and a text is shown as under the new one."""
    raw = {"plugins": {"p": {"title": "a", "apiKey": "hidden", "row": {"text": "b"}}}}
    shown = [str(each) for each in entries_of(raw, classes={"plugins.p": Settings})]
    whole = effective(build_config(raw), raw, {"plugins.p": Settings}, {})

    assert ['plugins.p.title: "a"', "plugins.p.apiKey: secret", 'plugins.p.row.text: "b"'] == shown
    assert ("***", "b") == (whole["plugins"]["p"]["token"], whole["plugins"]["p"]["line"]["words"])


@pytest.mark.usefixtures("old_host")
async def test_the_host_says_it_once(tmp_path, caplog):
    """One warning in the log with both names and the command, one sentence for the person, and the value in effect."""
    caplog.set_level(logging.WARNING)
    path = tmp_path / "config.json"
    path.write_text('{"host": {"slowSeconds": 3}, "plugins": {"p": {"title": "a"}}, "memory": {"mode": "curated"}}')

    class Plugin:
        @hookimpl
        def describe(self):
            return PluginInfo(contract="1.0", version="1", settings=Settings)

        @hookimpl
        def configure(self, setup):
            self.name = setup.settings.name

    plugin = Plugin()
    async with Host.from_config(path, plugins={"p": plugin}) as host:
        notices = host.notices()
    lines = [each.getMessage() for each in caplog.records if "renamed" in each.getMessage()]

    end = "and goes on working for a while; `beaver config migrate` renames it in the file"
    assert ("a", 3.0) == (plugin.name, build_config(parser.read_json(path)).host.slow_after_seconds)
    assert {
        "host": (f"`host.slowSeconds` is called `host.slowAfterSeconds` now {end}",),
        "p": (f"`plugins.p.title` is called `plugins.p.name` now {end}",),
    } == notices
    logged, remedy = "event=beaver_hooks.setting_renamed", 'remedy="beaver config migrate"'
    assert [
        f"{logged} old=host.slowSeconds new=host.slowAfterSeconds {remedy}",
        f"{logged} plugin=p old=plugins.p.title new=plugins.p.name {remedy}",
    ] == lines
