"""Installed plugins are known by their entry points, without being imported."""

import sys

import pytest

from beaver_hooks.registry.catalog import install_command, installed, versions
from beaver_hostspecs import PluginRefused


def distribution(folder, name, *points, version="1.0"):
    """Install a distribution, as far as its metadata go."""
    info = folder / f"{name}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (info / "entry_points.txt").write_text("\n".join(["[beaver_hooks]", *points]) + "\n")


def test_installed_plugins_are_found_and_not_imported(tmp_path, monkeypatch):
    """Entry points of our group are found by name, in the order of their names, and nothing is imported."""
    distribution(
        tmp_path, "catalogue", "zz-catalogued = catalogued_module:two", "aa-catalogued = catalogued_module:one"
    )
    monkeypatch.syspath_prepend(tmp_path)

    found = {name: point.value for name, point in installed().items() if name.endswith("catalogued")}

    assert list(found.items()) == [
        ("aa-catalogued", "catalogued_module:one"),
        ("zz-catalogued", "catalogued_module:two"),
    ]
    assert "catalogued_module" not in sys.modules


def test_two_distributions_with_one_name(tmp_path, monkeypatch):
    """Nobody guesses which of two plugins of one name is meant."""
    distribution(tmp_path, "first", "twin = first_module:make")
    distribution(tmp_path, "second", "twin = second_module:make")
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(PluginRefused) as caught:
        installed()

    sentence = "two installed distributions announce a plugin named `twin` ({} and {}); uninstall one of them"
    targets = ("first_module:make", "second_module:make")
    assert str(caught.value) in (sentence.format(*targets), sentence.format(*reversed(targets)))
    assert caught.value.plugin == "twin"


def test_the_same_distribution_found_twice(tmp_path, monkeypatch):
    """A distribution that two entries of the path show is one plugin."""
    for place in ("here", "there"):
        distribution(tmp_path / place, "same", "seen-twice = same_module:make")
        monkeypatch.syspath_prepend(tmp_path / place)

    assert installed()["seen-twice"].value == "same_module:make"


def test_versions(tmp_path, monkeypatch):
    """A plugin's version is its distribution's; one without a distribution has none."""
    from importlib.metadata import EntryPoint

    distribution(tmp_path, "versioned", "versioned = versioned_module:make", version="3.4")
    monkeypatch.syspath_prepend(tmp_path)
    loose = EntryPoint(name="loose", value="module:make", group="beaver_hooks")

    assert versions({"versioned": installed()["versioned"], "loose": loose}) == {
        "versioned": "3.4",
        "loose": "unknown",
    }


def test_install_commands():
    """Our own plugins have a known distribution; of others only the name of the plugin is known."""
    assert [install_command(name) for name in ("gateway", "tally")] == [
        "pip install beaver-hooks-gateway",
        "pip install the distribution of `tally`",
    ]
