"""The state folder is private, hidden from git, and no way out of itself."""

import contextlib
import stat
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaver_hooks.state_folder import make_state_folder, plugin_folder
from beaver_hostspecs import AuditUnavailable, PluginRefused
from beaver_hostspecs.naming import PLUGIN_NAME


def mode(path):
    return stat.S_IMODE(path.lstat().st_mode)


def test_it_is_made_private_and_hidden(tmp_path):
    """The folder and its parents are made; git ignores all of it; a second call changes nothing."""
    folder = make_state_folder(tmp_path / "project" / ".beaver")
    (folder / ".gitignore").write_text("mine\n")

    assert folder == make_state_folder(folder)
    assert (
        mode(folder),
        mode(folder / ".gitignore"),
        (folder / ".gitignore").read_text(),
    ) == (0o700, 0o600, "mine\n")


def test_a_new_folder_ignores_everything(tmp_path):
    """The .gitignore of a new folder matches every file."""
    assert (make_state_folder(tmp_path / "s") / ".gitignore").read_text() == "*\n"


def test_a_relative_path_becomes_absolute(tmp_path, monkeypatch):
    """A later change of the working directory does not move the state."""
    monkeypatch.chdir(tmp_path)

    assert tmp_path / ".beaver" == make_state_folder(Path(".beaver"))


def test_a_loose_folder_is_tightened(tmp_path):
    """A folder that others may enter becomes private."""
    (tmp_path / "s").mkdir(mode=0o755)

    assert mode(make_state_folder(tmp_path / "s")) == 0o700


@pytest.mark.parametrize(("found", "accepted"), [(0o755, True), (0o777, False)])
def test_a_folder_of_somebody_else(tmp_path, monkeypatch, found, accepted):
    """A folder that cannot be tightened is used unless every user may write to it."""
    folder = tmp_path / "s"
    folder.mkdir()
    folder.chmod(found)
    monkeypatch.setattr(Path, "chmod", refuse)

    if accepted:
        assert folder == make_state_folder(folder)
    else:
        with pytest.raises(AuditUnavailable) as caught:
            make_state_folder(folder)
        assert f"Every user can write to the state folder {folder}; use a private one." == str(caught.value)


def refuse(*_):
    raise PermissionError(1, "Operation not permitted")


@pytest.mark.parametrize("kind", ["link", "file"])
def test_what_is_no_folder_is_refused(tmp_path, kind):
    """A symbolic link or a file in its place is refused with a remedy, and nothing is written through it."""
    (tmp_path / "elsewhere").mkdir()
    folder = tmp_path / ".beaver"
    if kind == "link":
        folder.symlink_to(tmp_path / "elsewhere")
    else:
        folder.write_text("")

    with pytest.raises(AuditUnavailable) as caught:
        make_state_folder(folder)

    what = {"link": "a symbolic link; name its target instead", "file": "not a folder; move it"}[kind]
    assert f"The state folder {folder} is {what}." == str(caught.value)
    assert [*(tmp_path / "elsewhere").iterdir()] == []


def test_a_linked_gitignore_is_not_followed(tmp_path):
    """A dangling link in place of the .gitignore makes no file elsewhere."""
    folder = tmp_path / ".beaver"
    folder.mkdir()
    (folder / ".gitignore").symlink_to(tmp_path / "planted")

    make_state_folder(folder)

    assert not (tmp_path / "planted").exists()


def test_a_place_that_cannot_be_used_is_explained(tmp_path):
    """A folder below a file gives one sentence."""
    (tmp_path / "file").write_text("")

    with pytest.raises(AuditUnavailable) as caught:
        make_state_folder(tmp_path / "file" / ".beaver")

    expected = f"The state folder {tmp_path / 'file' / '.beaver'} cannot be used (File exists); make it writable, or set `host.stateFolder` to another one."
    assert expected == str(caught.value)


def test_a_plugin_has_a_folder_of_its_own(tmp_path):
    """A plugin's folder is private and lies apart from the host's files."""
    folder = plugin_folder(tmp_path / "s", "my_plugin-2")

    assert (tmp_path / "s" / "plugins" / "my_plugin-2", 0o700) == (folder, mode(folder))
    assert folder == plugin_folder(tmp_path / "s", "my_plugin-2")


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a/b", "../x", "/etc", "a\n", ".hidden", "a" * 65, "\u00fc", "a.b", "2a", 7]
)
def test_a_name_that_no_plugin_may_have_is_refused(tmp_path, name):
    """No name leads out of the state folder."""
    with pytest.raises(PluginRefused) as caught:
        plugin_folder(make_state_folder(tmp_path / "s"), name)

    assert str(caught.value) == (
        "a plugin's name must have 1 to 64 letters, digits, dashes and underscores, and start with a letter; rename its entry point"
    )


@given(name=st.text(max_size=70) | st.from_regex(PLUGIN_NAME, fullmatch=True))
def test_a_name_is_one_folder(name):
    """Every name that a plugin may have is one folder directly below `plugins`; no other name makes anything."""
    with tempfile.TemporaryDirectory() as place:
        plugins = Path(place) / "s" / "plugins"
        with contextlib.suppress(PluginRefused):
            plugin_folder(plugins.parent, name)

        made = [each.name for each in plugins.iterdir()] if plugins.exists() else []
        assert made == ([name] if PLUGIN_NAME.fullmatch(name) else [])


def test_a_linked_plugin_folder_is_refused(tmp_path):
    """A symbolic link in place of a plugin's folder is refused."""
    state = make_state_folder(tmp_path / "s")
    (state / "plugins").mkdir()
    (state / "plugins" / "evil").symlink_to(tmp_path)

    with pytest.raises(AuditUnavailable):
        plugin_folder(state, "evil")
