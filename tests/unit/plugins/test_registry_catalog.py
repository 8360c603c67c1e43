"""Installed plugins are known by their entry points, without being imported."""

import sys

from beaver_hooks.plugins.entry_points import Rivals, install_command, installed
from beaver_hostspecs.distributions import install_command as pip_install


def distribution(folder, name, *points, version="1.0"):
    """Install a distribution, as far as its metadata go."""
    info = folder / f"{name}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (info / "entry_points.txt").write_text("\n".join(["[beaver_hooks]", *points]) + "\n")


def test_installed_plugins_are_found_and_not_imported(tmp_path, monkeypatch):
    """Entry points of our group are found in the order of their names, without importing their modules."""
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
    """Two distributions with one plugin name become `Rivals`, and the catalog still finds the other plugins."""
    distribution(tmp_path, "second", "twin = second_module:make")
    distribution(tmp_path, "first", "twin = first_module:make", "catalogued-single = first_module:other")
    monkeypatch.syspath_prepend(tmp_path)

    found = installed()

    targets = ("first_module:make", "second_module:make")
    assert (found["twin"], found["catalogued-single"].value) == (
        Rivals(name="twin", targets=targets), "first_module:other",
    )  # fmt: skip
    assert str(found["twin"]) == (
        "several installed distributions offer a plugin named `twin` (first_module:make and second_module:make); uninstall all of them but one"
    )


def test_the_same_distribution_found_twice(tmp_path, monkeypatch):
    """A distribution that two entries of the path show is one plugin."""
    for place in ("here", "there"):
        distribution(tmp_path / place, "same", "seen-twice = same_module:make")
        monkeypatch.syspath_prepend(tmp_path / place)

    assert installed()["seen-twice"].value == "same_module:make"


def test_a_distribution_that_hides_another(tmp_path, monkeypatch):
    """Of two versions of one distribution the first on the path is used, as for imports."""
    for place, name, module in [("new", "Hid_den", "new_module"), ("old", "hid-den", "old_module")]:
        distribution(tmp_path / place, name, f"hidden = {module}:make")
    monkeypatch.syspath_prepend(tmp_path / "old")
    monkeypatch.syspath_prepend(tmp_path / "new")

    assert installed()["hidden"].value == "new_module:make"


def test_a_distribution_that_cannot_be_read(tmp_path, monkeypatch, caplog):
    """The catalog skips an unreadable distribution with a warning, and finds the others."""
    distribution(tmp_path, "broken", "broken = broken_module:make")
    (tmp_path / "broken-1.0.dist-info" / "entry_points.txt").write_bytes(b"[beaver_hooks]\nbroken = \xff\xfe:make\n")
    distribution(tmp_path, "whole", "catalogued-whole = whole_module:make")
    monkeypatch.syspath_prepend(tmp_path)

    found = installed()

    assert ("broken" in found, found["catalogued-whole"].value) == (False, "whole_module:make")
    assert caplog.messages == ["event=beaver_hooks.distribution_unreadable error=UnicodeDecodeError"]


def test_install_commands():
    """The install command of our own plugins names their distribution; another plugin has no install command."""
    assert [install_command(name) for name in ("gateway", "tally")] == [pip_install("beaver-hooks-gateway"), None]
