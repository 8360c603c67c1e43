"""Which command installs another distribution of this project here."""

import json
from importlib import metadata
from pathlib import Path

import pytest

from beaver_hostspecs import distributions
from beaver_hostspecs.distributions import install_command

ROOT = Path(__file__).parents[2]


@pytest.fixture
def installed_from(monkeypatch):
    """Make it look as if the contract was installed from somewhere."""

    class Installed:
        def __init__(self, text):
            self.text = text

        def read_text(self, name):
            assert "direct_url.json" == name
            return self.text

    def install(text):
        distributions._clone.cache_clear()
        monkeypatch.setattr(metadata, "distribution", lambda name: Installed(text))

    yield install
    distributions._clone.cache_clear()


def test_in_a_clone(installed_from):
    """What lies in the clone that the contract was installed from is installed from there, with blanks quoted."""
    installed_from(json.dumps({"url": (ROOT / "hostspecs").as_uri(), "dir_info": {}}))

    assert [f"pip install {ROOT}/plugins/local", f"pip install '{ROOT}/plugins/local[onnx]'", f"pip install '{ROOT}[mcp]'"] == [
        install_command("beaver-hooks-local"), install_command("beaver-hooks-local", "onnx"),
        install_command("beaver-hooks", "mcp"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(None, id="from an index"),
        pytest.param("{", id="damaged"),
        pytest.param("[]", id="no object"),
        pytest.param('{"url": "https://example.org/hostspecs.zip"}', id="from an archive"),
        pytest.param('{"url": "file:///nowhere/hostspecs"}', id="the clone is gone"),
    ],
)
def test_elsewhere(installed_from, text):
    """Without a clone it is installed by its name."""
    installed_from(text)

    assert ["pip install beaver-hooks-local", "pip install 'beaver-hooks[mcp]'"] == [
        install_command("beaver-hooks-local"), install_command("beaver-hooks", "mcp"),
    ]  # fmt: skip


def test_what_a_clone_lacks(installed_from):
    """A distribution that the clone does not hold is installed by its name."""
    installed_from(json.dumps({"url": (ROOT / "hostspecs").as_uri()}))

    assert "pip install beaver-hooks-elsewhere" == install_command("beaver-hooks-elsewhere")


def test_the_contract_is_not_installed(monkeypatch):
    """Where the contract is only on the path, nothing is known of a clone."""

    def missing(name):
        raise metadata.PackageNotFoundError(name)

    distributions._clone.cache_clear()
    monkeypatch.setattr(metadata, "distribution", missing)
    try:
        assert "pip install beaver-hooks-local" == install_command("beaver-hooks-local")
    finally:
        distributions._clone.cache_clear()
