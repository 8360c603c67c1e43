"""A profile belongs to the person: shared by projects, except where a project has its own, until the user moves that."""

import asyncio
import os
import subprocess
import sys
import threading

import pytest
from selection import campaign

from beaver_hooks_curated import (
    Curated,
    CuratedError,
    CuratedSettings,
    EditRefused,
    MemoryLocked,
    MemoryService,
    MemoryUnconfirmed,
    MemoryUnreadable,
    Operation,
    Target,
    UnknownChange,
    files,
)
from beaver_hooks_curated.commands import CuratedCommands
from beaver_hooks_curated.folders import locked
from beaver_hostspecs import CommandContext, Setup
from beaver_hostspecs.testing import RecordedFiles, RecordingReport

MEMORY, USER = Target.MEMORY, Target.USER
STEPS = 7
"""The syncs and renames of a move; at each it is killed once."""


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


@pytest.fixture
def old(tmp_path, clock):
    """Makes a project as older versions did, without a shared profile, and adds the given entries."""

    def make(*entries, name="a", user=None, **settings):
        service = MemoryService(tmp_path / name / "curated", CuratedSettings(**settings), clock=clock)
        for entry in entries:
            add(service, entry, user=user)
        return service.folder

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


def test_a_project_with_a_profile_of_its_own(project, old, person):
    """A project with its own profile shows and edits only that one, and other projects use the shared one."""
    folder = old("Likes tea.", "Works on Tuesdays.")
    add(project("b"), "Prefers coffee.")
    add(project("a"), "Has a cat.")
    shown = [str(project(name).snapshot().snapshot.blocks) for name in "ab"]

    assert [(True, False), (False, True)] == [("tea" in each, "coffee" in each) for each in shown]
    assert ({"USER.md": "Likes tea.\n§\nWorks on Tuesdays.\n§\nHas a cat."}, {"USER.md": "Prefers coffee."}) == (
        files_in(folder),
        files_in(person),
    )
    project("a").undo()
    assert ("Likes tea.", "Works on Tuesdays.") == entries(project("a"))


def test_an_emptied_profile_stays_that_of_the_project(project, old):
    """An emptied profile with a history stays the project's profile, and one without a history does not."""
    folder = old("Likes tea.")
    (folder / "USER.md").unlink()
    emptied = [folder / "own" for folder in project("a").own_profiles]
    project("a").undo()
    empty = project("b").folder
    empty.mkdir(parents=True)
    (empty / "USER.md").touch()

    assert ([folder / "own"], ("Likes tea.",), ()) == (emptied, entries(project("a")), project("b").own_profiles)


@pytest.mark.parametrize("make", [lambda path: path.symlink_to("/nowhere"), lambda path: path.mkdir()])
def test_what_is_no_file_is_not_passed_over(project, make):
    """A link or folder in the place of the project's profile is an error, and the shared profile is not used."""
    folder = project().folder
    folder.mkdir(parents=True)
    make(folder / "USER.md")

    with pytest.raises(MemoryUnreadable):
        project().snapshot()


def test_what_cannot_be_looked_at_is_not_passed_over(tmp_path, project):
    """A project's folder that is a circular link is an error, since it may hold a profile."""
    (tmp_path / "a").symlink_to("a")

    with pytest.raises(MemoryUnreadable):
        project("a").page(USER)


def test_profiles_of_users(project, old, person):
    """With `perUser` each user's profile is shared, unless the project has its own profile of that user."""
    old("Likes tea.", user="anna", per_user=True)
    service = project("a", per_user=True)
    add(service, "Likes maps.", user="ben")
    add(service, "Sails.", user="anna")

    assert (("Likes tea.", "Sails."), ("Likes maps.",), ()) == (
        entries(service, "anna"), entries(service, "ben"), entries(project("b", per_user=True), "anna"),
    )  # fmt: skip
    assert ["ben-"] == [path.name[:4] for path in (person / "users").iterdir()]


def test_a_home_that_is_reached_through_a_link(tmp_path, clock):
    """A project in the home directory has one folder, also through a link, and no profile of its own."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    service = MemoryService(
        tmp_path / "link" / "curated", CuratedSettings(), person=tmp_path / "real" / "curated", clock=clock
    )
    add(service, "Likes tea.")

    assert ((), None, service.folder) == (service.own_profiles, service.preview_move(), service.person_folder)


def test_a_person_without_a_home(project, person, old):
    """Where the shared folder cannot be created, the project keeps both files."""
    person.parent.write_text("")
    service = project()
    add(service, "Likes tea.")

    assert ({"USER.md": "Likes tea."}, (), None) == (
        files_in(service.folder), service.own_profiles, service.preview_move(),
    )  # fmt: skip


# --- Pending writes, and forgetting


def test_a_write_that_waited_before_profiles_were_shared(project, old):
    """A pending write of an older version is approved into the shared profile, or rejected, and leaves the queue."""
    old(approval=True)
    before = MemoryService(project().folder, CuratedSettings(approval=True))
    staged = [before.stage(USER, [Operation(action="add", content=each)]) for each in ("Likes tea.", "Sails.")]
    service = project("a")
    waiting = service.pending()
    service.approve(staged[0].id)
    service.reject(staged[1].id)

    assert (tuple(staged), (), ("Likes tea.",)) == (waiting, service.pending(), entries(project("b")))


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


# --- Moving


def test_a_move(project, old, person):
    """A move adds only new entries to the shared file and keeps the project's files, and undo removes those entries."""
    folder = old("Likes tea.", "Sails.")
    add(project("b"), "Sails.")
    service = project("a")
    plan = service.preview_move()
    moved = service.move_profile(plan)

    assert (("Likes tea.",), ("Sails.",), ("Sails.", "Likes tea.")) == (plan.added, plan.present, plan.page.entries)
    assert [("Sails.", "Likes tea.")] * 2 == [entries(project(name)) for name in "ab"]
    assert ((), None) == (project("a").own_profiles, project("a").preview_move())
    assert (2, "Likes tea.\n§\nSails.") == (len(moved.kept), moved.kept[1].read_text())
    assert {path.name for path in moved.kept} | {".lock"} == {path.name for path in folder.iterdir()}
    project("b").undo()
    assert ("Sails.",) == entries(project("a"))


def test_a_move_of_a_profile_without_history(project):
    """A profile written by hand moves without a history, and adds nothing if the shared one has its entries."""
    service = project("a")
    service.folder.mkdir(parents=True)
    (service.folder / "USER.md").write_text("Likes tea.")
    add(project("b"), "Likes tea.")
    moved = service.move_profile(service.preview_move())

    assert (None, 1, ("Likes tea.",)) == (moved.written.change, len(moved.kept), entries(service))


def test_what_was_moved_is_forgotten(project, old):
    """`forget_history` also deletes the files that a move keeps."""
    folder = old("Likes tea.")
    service = project("a")
    service.move_profile(service.preview_move())
    service.forget_history()

    assert [] == [path.name for path in folder.iterdir() if "moved" in path.name]


def test_a_move_that_does_not_fit(project, old, person):
    """A move beyond the limit is refused with the figures and two remedies, and both files stay unchanged."""
    folder = old("a" * 30)
    add(project("b"), "b" * 30)

    with pytest.raises(EditRefused, match=r"would be 63 of 50 characters.*Shorten one.*userCharLimit"):
        project("a", user_char_limit=50).preview_move()
    assert ({"USER.md": "a" * 30}, {"USER.md": "b" * 30}) == (files_in(folder), files_in(person))


@pytest.mark.parametrize("changed", ["a", "b"])
def test_a_file_that_changes_after_it_was_shown(project, old, changed):
    """A move is refused if either file has changed since the user saw the preview."""
    old("Likes tea.")
    service = project("a")
    plan = service.preview_move()
    add(project(changed), "Sails.")

    with pytest.raises(EditRefused, match="changed in the meantime"):
        service.move_profile(plan)
    assert [("Likes tea.", "Sails.") if changed == "a" else ("Likes tea.",)] == [entries(project("a"))]


def test_a_text_that_is_saved_during_the_move(project, old, monkeypatch):
    """A text that an editor saves during the move stays in the project's profile, and the move is refused."""
    folder = old("Likes tea.")
    service, rename = project("a"), files.rename

    def slow(path, new):
        if path.name == "USER.md":
            path.write_text("Likes tea.\n§\nSails.")
        rename(path, new)

    monkeypatch.setattr(files, "rename", slow)
    with pytest.raises(EditRefused, match="keeps its own profile"):
        service.move_profile(service.preview_move())
    assert (("Likes tea.", "Sails."), "Likes tea.\n§\nSails.") == (
        entries(project("a")),
        (folder / "USER.md").read_text(),
    )


@pytest.mark.parametrize("where", ["project", "person"])
def test_a_file_that_cannot_be_read(project, old, person, where):
    """A move with an unreadable file raises an error that names it, and the file stays unchanged."""
    folder = old("Likes tea.")
    add(project("b"), "Sails.")
    broken = (folder if where == "project" else person) / "USER.md"
    broken.write_bytes(b"caf\xe9")

    with pytest.raises(MemoryUnreadable, match=f"{broken} is not UTF-8"):
        project("a").preview_move()
    assert b"caf\xe9" == broken.read_bytes()


def test_a_file_that_waits_to_be_confirmed(project, old):
    """An unconfirmed file is not moved into the shared profile."""
    folder = old("Likes tea.")

    with pytest.raises(MemoryUnconfirmed, match="trust --files"):
        project("a", trust=RecordedFiles()).preview_move()
    assert {"USER.md": "Likes tea."} == files_in(folder)


@pytest.mark.parametrize(
    ("spoil", "problem"),
    [
        (lambda person: [person.parent.mkdir(), person.write_text("")], "Not a directory"),
        (lambda person: [person.parent.mkdir(), person.symlink_to("away")], "cannot be written"),
        (lambda person: [(person.parent / "away").mkdir(parents=True), person.symlink_to("away")], "symbolic link"),
    ],
)
def test_a_shared_folder_that_cannot_be_used(project, old, person, spoil, problem):
    """If the home directory is not writable, the project keeps its own profile."""
    folder = old("Likes tea.")
    spoil(person)
    service = project("a")

    with pytest.raises(CuratedError, match=problem):
        service.move_profile(service.preview_move())
    assert ({"USER.md": "Likes tea."}, ("Likes tea.",)) == (files_in(folder), entries(service))


@pytest.mark.parametrize("where", ["project", "person"])
def test_a_lock_that_is_held(project, old, person, where):
    """A writer who does not finish keeps the move from being made, and is named."""
    folder = old("Likes tea.")
    add(project("b"), "Sails.")
    service, held, done = project("a", lock_seconds=0.05), threading.Event(), threading.Event()
    plan = service.preview_move()

    def hold():
        with locked(folder if where == "project" else person, 5):
            held.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    try:
        with pytest.raises(MemoryLocked, match=f"process {os.getpid()}"):
            service.move_profile(plan)
    finally:
        done.set()
        thread.join()
    assert (("Likes tea.",), ("Sails.",)) == (entries(project("a")), entries(project("b")))


KILLED = """
import os, sys
from pathlib import Path
from beaver_hooks_curated import CuratedSettings, MemoryService
service = MemoryService(Path(sys.argv[1]), CuratedSettings(), person=Path(sys.argv[2]))
plan, left = service.preview_move(), [int(sys.argv[3])]
def counted(function):
    def step(*words, **more):
        left[0] -= 1
        if left[0] < 0:
            os._exit(9)
        return function(*words, **more)
    return step
os.fsync, os.rename, os.replace = map(counted, (os.fsync, os.rename, os.replace))
service.move_profile(plan)
"""


@pytest.mark.parametrize(
    "step", [0, STEPS // 2, STEPS, *campaign(*(each for each in range(1, STEPS) if each != STEPS // 2))]
)
def test_a_move_that_is_killed(project, old, person, step):
    """A move killed at any step loses no entry, shows one whole profile, and is completed by the next move."""
    folder = old("Likes tea.", "Sails.")
    add(project("b"), "Has a cat.")
    code = subprocess.run([sys.executable, "-c", KILLED, folder, person, str(step)], check=False).returncode
    shown = entries(project("a"))
    service = project("a")
    if plan := service.preview_move():
        service.move_profile(plan)

    assert code == (9 if step < STEPS else 0)
    assert shown in (("Likes tea.", "Sails."), ("Has a cat.", "Likes tea.", "Sails."))
    assert [("Has a cat.", "Likes tea.", "Sails.")] * 2 == [entries(project(name)) for name in "ab"]
    assert ["Likes tea.\n§\nSails."] == [path.read_text() for path in folder.glob("USER.moved-*.md")]


# --- Notices to the user


def configured(state, person, **settings):
    plugin, report = Curated(), RecordingReport()
    setup = Setup(settings=CuratedSettings(**settings), state_folder=state, person_folder=person, report=report)
    plugin.configure(setup)
    return plugin, report


async def test_the_user_is_told(project, old, person):
    """A project with its own profile gets a notice with the command and no degradation, and none after the move."""
    folder = old("Likes tea.")
    (plugin, told), (again, after) = configured(folder, person), configured(folder, person)
    await plugin.start()
    await asyncio.to_thread(plugin.take_move, plugin.service.preview_move(), None)
    await again.start()

    assert ([], []) == (told.degradations, after.notices)
    said = (
        f"this project goes on with a USER.md of its own ({folder / 'USER.md'}) instead of the one that your projects "
        f"share, in {person}; `beaver memory curated move-user` merges it into that one, after showing what would come "
        "of it"
    )
    assert [said] == told.notices
    assert [("curated_changed", 1), ("curated_profile_moved", 1)] == [
        (name, facts["added"]) for name, facts in told.events
    ]


async def test_profiles_of_users_are_told_too(old, person):
    """With `perUser` the notice counts the profiles and names the option `--user`."""
    for user in ("anna", "ben"):
        folder = old("Likes tea.", user=user, per_user=True)
    plugin, report = configured(folder, person, per_user=True)
    await plugin.start()

    assert [True, True] == [each in report.notices[0] for each in (" and 1 more)", "move-user --user ID`")]


async def test_a_named_folder_holds_both(tmp_path, person):
    """With the setting `folder`, both files are in that folder and no shared folder is created."""
    plugin, report = configured(tmp_path / "state", person, folder=str(tmp_path / "named"))
    await plugin.start()
    add(plugin.service, "Likes tea.")

    assert ({"USER.md": "Likes tea."}, False, []) == (files_in(tmp_path / "named"), person.exists(), report.notices)


def test_show_says_whose_profile_it_is(project, old, person):
    """`show` tells a project's own profile from the shared one, and names the shared folder."""
    old("Likes tea.")
    add(project("b"), "Sails.")
    owner = CommandContext(trust="full")
    own, shared = (CuratedCommands(project(name)).show(owner, RecordingReport()) for name in "ab")

    assert f"USER.md of this project alone, not the one in {person} (`move-user` merges it into that one) [0% —" in own
    assert "USER.md [0% — 6/1,375 chars]\n1. Sails." in shared
