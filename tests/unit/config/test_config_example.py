"""A real host opens with the complete example."""

import json
import sys
from importlib import metadata
from pathlib import Path

import pytest

from beaver_hooks import Host

EXAMPLE = Path(__file__).parents[3] / "config.example.json"
CURATED = """
from beaver_hostspecs import hookimpl

class Curated:
    @hookimpl
    async def before_prompt(self, turn):
        return None
"""


@pytest.fixture
def _installed(tmp_path, monkeypatch):
    """Two distributions and no others: a curated memory that remembers nothing, and the example plugin."""
    site = tmp_path / "site"
    points = {"curated": "curated_for_the_example:Curated", "tally": "beaver_tally:Tally"}
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


@pytest.mark.usefixtures("_installed")
async def test_the_example_opens(tmp_path):
    """In the mode `curated` both plugins load, and `tally` recalls as many prompts as the file says."""
    raw = json.loads(EXAMPLE.read_bytes())
    raw["plugins"]["tally"]["recallLimit"] = 2
    changed = tmp_path / "config.json"
    changed.write_text(json.dumps(raw))

    assert [await recalled(EXAMPLE), await recalled(changed)] == [3, 2]
