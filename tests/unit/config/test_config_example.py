"""A real host opens with the complete example."""

import json
import sys
from importlib import metadata
from pathlib import Path

import attrs
import pytest

from beaver_hooks import Host
from beaver_hooks.config import Config, parse_config
from beaver_hooks.config.model import AgentSettings, HostSettings
from beaver_hooks.config.provider import ProviderSettings
from beaver_hooks.config.type_hints import key_of, settings_fields
from beaver_hooks.plugins.settings_classes import settings_classes

EXAMPLE = Path(__file__).parents[3] / "config.example.json"
CURATED = """
from beaver_hooks_curated import CuratedSettings
from beaver_hostspecs import PluginInfo, hookimpl

class Curated:
    @hookimpl
    def describe(self):
        return PluginInfo(contract="1.0", version="1", settings=CuratedSettings, settings_path="memory.curated")

    @hookimpl
    async def before_prompt(self, turn):
        return None
"""


@pytest.fixture
def _installed(tmp_path, monkeypatch):
    """The plugins of the example: a curated memory that remembers nothing, and a gateway that must not be imported."""
    site = tmp_path / "site"
    points = {
        "curated": "curated_for_the_example:Curated", "tally": "beaver_tally:Tally",
        "local": "beaver_hooks_local:make_plugin", "gateway": "no_module_of_this_name:it_is_blocked",
    }  # fmt: skip
    for name, value in points.items():
        info = site / f"example_{name}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: example-{name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[beaver_hooks]\n{name} = {value}\n")
    (site / "curated_for_the_example.py").write_text(CURATED)
    found = list(metadata.distributions(path=[str(site)]))
    monkeypatch.syspath_prepend(site)
    monkeypatch.setattr(metadata, "distributions", lambda **_: found)
    monkeypatch.chdir(tmp_path)
    yield
    sys.modules.pop("curated_for_the_example", None)


async def recalled(config: Path) -> int:
    """Return how many of five earlier prompts a turn recalls."""
    async with Host.from_config(config, environment={}) as host:
        for number in range(5):
            turn = await host.open_turn(f"prompt number {number}", session="s")
            await turn.commit("noted")
            await host.drain()
        turn = await host.open_turn("and now?", session="s")
        count = len(turn.receipt.plugins["tally"].candidates)
        await turn.drop()
        assert [name for name, health in host.health().items() if health.state == "ok"] == ["curated", "host", "tally"]
    return count


def test_the_example_has_every_section():
    """Every setting of the host, the agent and the plugins of this repository is there, and fits."""
    classes = settings_classes(Config())
    config = parse_config(EXAMPLE.read_bytes(), environment={})
    for path, cls in classes.items():
        config.settings(cls, path, environment={"MEMORY_GATEWAY_KEY": "x"})
    given = json.loads(EXAMPLE.read_bytes())

    own = {key_of(each) for each in settings_fields(Config)} - {"$schema"}
    assert {"memory.curated", "memory.gateway", "memory.local", "plugins.tally"} <= {*classes}
    assert [] == [path for path in own if given.get(path) is None]
    assert [] == [each for path, cls in classes.items() for each in missing(cls, at(given, path), path)]
    sections = {"agent": AgentSettings, "host": HostSettings, "provider": ProviderSettings}
    assert [] == [each for name, cls in sections.items() for each in missing(cls, given[name], name)]


def at(given, path):
    for name in path.split("."):
        given = given[name]
    return given


def missing(cls, given, path):
    """Return the settings that are not given, those of settings in settings too."""
    found = []
    for each in settings_fields(cls):
        key = key_of(each)
        if key not in given:
            found.append(f"{path}.{key}")
        elif isinstance(given[key], dict) and attrs.has(each.type):
            found += missing(each.type, given[key], f"{path}.{key}")
    return found


@pytest.mark.usefixtures("_installed")
async def test_the_example_opens(tmp_path):
    """In the mode `curated` both plugins load, and `tally` recalls as many prompts as the file says."""
    raw = json.loads(EXAMPLE.read_bytes())
    raw["plugins"]["tally"]["recallLimit"] = 2
    # Copied, because the state lies beside the file.
    example, changed = tmp_path / "example" / "config.json", tmp_path / "config.json"
    example.parent.mkdir()
    example.write_bytes(EXAMPLE.read_bytes())
    changed.write_text(json.dumps(raw))

    assert [await recalled(example), await recalled(changed)] == [3, 2]
