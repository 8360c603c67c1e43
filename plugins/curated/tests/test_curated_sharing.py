"""A profile belongs to the person, and projects share it; notes belong to the project."""

import pytest

from beaver_hooks_curated import Curated, CuratedSettings, MemoryService, Operation, Target, UnknownChange
from beaver_hostspecs import Setup
from beaver_hostspecs.testing import RecordingReport

MEMORY, USER = Target.MEMORY, Target.USER


@pytest.fixture
def person(tmp_path):
    return tmp_path / "home" / "curated"


@pytest.fixture
def project(tmp_path, person, clock):
    """Makes the service of a project of the person, with settings as given."""

    def make(name="a", *, trust=None, **settings):
        folder = tmp_path / name / "curated"
        return MemoryService(folder, CuratedSettings(**settings), person=person, clock=clock, trust=trust)

    return make


def add(service, text, target=USER, user=None):
    return service.change(target, [Operation(action="add", content=text)], user)


def entries(service, user=None, target=USER):
    return service.page(target, user).entries


def files_in(folder):
    """Return the texts of the files of a folder, without histories and locks."""
    return {path.name: path.read_text() for path in sorted(folder.glob("*.md"))}


# --- Where a profile is


def test_a_profile_is_shared_by_projects(project, person):
    """Projects share the entries of the profile, and each project keeps its own notes."""
    add(project("a"), "Likes tea.")
    add(project("a"), "The build needs make.", MEMORY)
    add(project("b"), "The build needs npm.", MEMORY)

    assert [("Likes tea.",), ("Likes tea.",)] == [entries(project(name)) for name in "ab"]
    assert [("The build needs make.",), ("The build needs npm.",)] == [
        entries(project(name), target=MEMORY) for name in "ab"
    ]
    assert {"USER.md": "Likes tea."} == files_in(person)


def test_a_shared_profile_is_undone_in_any_project(project):
    """Projects share the history and undo of the profile, and not those of notes."""
    add(project("a"), "Likes tea.")
    add(project("a"), "The build needs make.", MEMORY)

    assert ["Likes tea."] == [each.added[0] for each in project("b").history()]
    project("b").undo()
    assert ((), ("The build needs make.",)) == (entries(project("a")), entries(project("a"), target=MEMORY))
    with pytest.raises(UnknownChange):
        project("b").undo()


def test_profiles_of_users(project, person):
    """With `perUser` each user's profile is shared by projects, and no user sees that of another."""
    service = project("a", per_user=True)
    add(service, "Likes tea.", user="anna")
    add(service, "Likes maps.", user="ben")

    assert (("Likes tea.",), ("Likes maps.",), ()) == tuple(
        entries(project("b", per_user=True), user) for user in ("anna", "ben", "carl")
    )
    assert ["anna-", "ben-"] == sorted(path.name[: -len("0123456789abcdef")] for path in (person / "users").iterdir())


def test_a_home_that_is_reached_through_a_link(tmp_path, clock):
    """A project in the home directory has one folder for both files, also through a link."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    service = MemoryService(
        tmp_path / "link" / "curated", CuratedSettings(), person=tmp_path / "real" / "curated", clock=clock
    )
    add(service, "Likes tea.")

    assert (service.folder, {"USER.md": "Likes tea."}) == (service.folder_of(USER), files_in(service.folder))


def test_a_person_without_a_home(project, person):
    """Where the shared folder cannot be created, the project keeps both files."""
    person.parent.write_text("")
    service = project()
    add(service, "Likes tea.")

    assert {"USER.md": "Likes tea."} == files_in(service.folder)


# --- Pending writes, and forgetting


def test_a_queue_shows_only_what_is_meant_here(project, person, clock):
    """Pending writes for the home directory's notes are not shown to a project, and cannot be approved there."""
    home = MemoryService(person, CuratedSettings(approval=True), clock=clock)
    notes = home.stage(MEMORY, [Operation(action="add", content="At home.")])
    profile = home.stage(USER, [Operation(action="add", content="Likes tea.")])

    assert ((profile,), 2) == (project("a").pending(), len(home.pending()))
    with pytest.raises(UnknownChange):
        project("a").approve(notes.id)


def test_forgetting_reaches_the_shared_profile_and_no_notes_of_others(project, person, clock):
    """Forgetting in a project clears the shared profile's history, and keeps that of the home directory's notes."""
    tight = {"memory_char_limit": 10, "user_char_limit": 10, "overflow": "archive"}
    home = MemoryService(person, CuratedSettings(**tight), clock=clock)
    for target in Target:
        add(home, f"{target} 1", target)
        add(home, f"{target} 2", target)
    (person / "ARCHIVE.jsonl").write_text((person / "ARCHIVE.jsonl").read_text() + '{"target": "mem')
    project("a", **tight).forget_history()
    archive = (person / "ARCHIVE.jsonl").read_text()

    assert ([2, 1], [True, False]) == (
        [len(home.history(targets=(target,))) for target in Target],
        [f"{target} 1" in archive for target in Target],
    )


# --- A named folder


async def test_a_named_folder_holds_both(tmp_path, person):
    """With the setting `folder`, both files are in that folder and no shared folder is created."""
    plugin, named = Curated(), tmp_path / "named"
    plugin.configure(
        Setup(
            settings=CuratedSettings(folder=str(named)),
            state_folder=tmp_path / "state",
            person_folder=person,
            report=RecordingReport(),
        )
    )
    await plugin.start()
    add(plugin.service, "Likes tea.")

    assert ({"USER.md": "Likes tea."}, False) == (files_in(named), person.exists())
