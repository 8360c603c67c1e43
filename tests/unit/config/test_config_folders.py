"""Which `.beaver` belongs to a working directory: the nearest one at or above it, else the user's own."""

import os

import pytest

from beaver_hooks import Host
from beaver_hooks.audit.memory_sink import MemorySink
from beaver_hooks.config import load_config
from beaver_hooks.config.locations import find_config, find_folder
from beaver_hostspecs import hookimpl


@pytest.fixture
def home(tmp_path):
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.fixture
def found(home):
    """Return where the state of a folder is, relative to the folder above the home directory."""

    def find(cwd):
        return str(find_folder({"HOME": str(home)}, cwd).relative_to(home.parent))

    return find


def make(folder, *names):
    for name in names:
        (folder / name).mkdir(parents=True)
    return folder / names[-1]


def test_the_nearest_one_counts(home, found):
    """A folder below a project has the project's state, unless it has its own."""
    make(home, "project/.beaver", "project/sub/deeper", "project/own/.beaver")
    asked = ("project", "project/sub/deeper", "project/own")
    assert ["home/project/.beaver", "home/project/.beaver", "home/project/own/.beaver"] == [
        found(home / each) for each in asked
    ]


def test_without_one_it_is_the_users_own(home, found):
    """A folder that belongs to no project, inside the home directory or elsewhere, has the user's own state."""
    elsewhere = make(home.parent, "elsewhere/deeper")
    assert ["home/.beaver"] * 3 == [found(each) for each in (home, make(home, "project"), elsewhere)]


def test_it_is_never_looked_for_above_the_home_directory(home, found):
    """The search for `.beaver` stops at the home directory and never uses a folder above it."""
    make(home.parent, ".beaver")
    assert "home/.beaver" == found(make(home, "project"))


def test_outside_the_home_directory_it_is_found_upwards_too(home, found):
    """A project elsewhere has its state above its folders, as a repository has its `.git`."""
    make(home.parent, "elsewhere/.beaver")
    assert "elsewhere/.beaver" == found(make(home.parent, "elsewhere/a/b"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give folders away")
@pytest.mark.parametrize("given_away", ["elsewhere", "elsewhere/.beaver"])
def test_a_change_of_owner_ends_the_search(home, found, given_away):
    """The search skips a `.beaver` beyond a folder of another user."""
    make(home.parent, "elsewhere/.beaver")
    below = make(home.parent, "elsewhere/below")
    os.chown(home.parent / given_away, 65534, 65534)
    assert "home/.beaver" == found(below)


def test_a_sub_folder_has_the_configuration_of_its_project(home):
    """A configuration is found as the folder is that it lies in, and still wants to be confirmed."""
    sub = make(home, "project/.beaver", "project/sub")
    (home / "project" / ".beaver" / "config.json").write_text("{}")
    found = find_config(None, {"HOME": str(home)}, sub)
    assert (home / "project" / ".beaver" / "config.json", False) == (found.path, found.given)


def test_the_state_of_a_sub_folder_is_that_of_its_project(home):
    """A program in a folder below a project uses the project's state, with no configuration too."""
    sub = make(home, "project/.beaver", "project/sub")
    loaded = load_config(environment={"HOME": str(home)}, cwd=sub)
    assert home / "project" / ".beaver" == loaded.state_folder


async def test_a_host_keeps_its_state_there_too(home, monkeypatch):
    """A host that is given no state folder has that of the working directory."""
    sub = make(home, "project/.beaver", "project/sub")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(sub)
    async with Host({}):
        pass
    assert (True, False, False) == (
        (home / "project" / ".beaver" / "host.db").exists(), (sub / ".beaver").exists(), (home / ".beaver").exists(),
    )  # fmt: skip


class Configured:
    """Remembers its folders, relative to the folder above the home directory."""

    def __init__(self, root):
        self.root = root

    @hookimpl
    def configure(self, setup):
        self.folders = [str(each.relative_to(self.root)) for each in (setup.state_folder, setup.person_folder)]


@pytest.mark.parametrize(
    ("named", "folders"),
    [
        ({}, ["home/project/.beaver/plugins/odd", "home/.beaver/plugins/odd"]),
        ({"state_folder": "state"}, ["home/state/plugins/odd"] * 2),
        ({"person_folder": "person"}, ["home/project/.beaver/plugins/odd", "home/person/plugins/odd"]),
        ({"state_folder": "state", "person_folder": "person"}, ["home/state/plugins/odd", "home/person/plugins/odd"]),
    ],
)
async def test_what_belongs_to_the_person_is_in_the_home_directory(home, monkeypatch, named, folders):
    """A plugin gets a folder of the project and one of the person; a host with a named state folder has one for both."""
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(make(home, "project/.beaver").parent)
    plugin = Configured(home.parent)
    async with Host({"odd": plugin}, **{name: home / folder for name, folder in named.items()}):
        assert folders == plugin.folders


@pytest.mark.parametrize(
    ("config", "folder"), [("{}", "home/.beaver"), ('{"host": {"stateFolder": "state"}}', "home/project/.beaver/state")]
)
def test_a_configuration_may_name_one_folder_for_all(home, config, folder):
    """State of the person is in the home directory, unless the configuration names a state folder."""
    path = make(home, "project/.beaver") / "config.json"
    path.write_text(config)
    loaded = load_config(path, environment={"HOME": str(home)})
    assert folder == str(loaded.person_folder.relative_to(home.parent))


def test_the_folder_of_the_person_may_be_a_link(home):
    """A home directory with links into another folder is the person's own doing, and is followed."""
    kept = make(home, "dotfiles/beaver")
    (home / ".beaver").symlink_to(kept)
    loaded = load_config(environment={"HOME": str(home)}, cwd=make(home, "project/.beaver").parent)
    assert kept == loaded.person_folder


async def test_an_unusable_folder_of_the_person_is_reported(home, monkeypatch):
    """A plugin without its folder in the home directory is still in service, and an event reports it."""
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(make(home, "project/.beaver").parent)
    (home / ".beaver").write_text("in the way")
    sink = MemorySink()
    async with Host({"odd": Configured(home.parent)}, sinks=[sink]) as host:
        assert "ok" == host.health()["odd"].state
    assert ["odd"] == [event.plugin for event in sink.named("plugin_folder_unusable")]
