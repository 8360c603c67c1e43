"""`beaver backup` and `beaver restore`: everything comes back as it was, or is refused with a remedy."""

import json
import os
import re
import resource
import shutil
import stat
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path

import apsw
import pytest
from integration.faults_kit import BACKUP_CASES, faulty
from processes import Ran, environment, run_beaver

from beaver_hooks.backups import archive, backup, restore
from beaver_hooks.backups.backup import Stored, make_backup
from beaver_hooks.backups.configured_plugins import Places
from beaver_hooks.config import load_config
from beaver_hostspecs.testing import Fault
from beaver_toolkit.sqlite.database import Database
from beaver_toolkit.sqlite.migrations import read_migrations

CONFIG = {
    "memory": {"mode": "curated", "local": {"enabled": True, "embedding": {"provider": "none"}}},
    "plugins": {"disabled": ["tally"]},
}


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A home with a project in which memories of every kind and a conversation are stored."""
    owner_home = tmp_path_factory.mktemp("filled")
    project = owner_home / "project"
    (project / ".beaver").mkdir(parents=True)
    (project / ".beaver" / "config.json").write_text(json.dumps(CONFIG))
    for words in (
        ("memory", "add", "The deploy key rotates on Mondays."),
        ("memory", "add", "Ann prefers tea.", "--type", "preference"),
        ("memory", "add", "The old server is in Ulm."),
        ("memory", "correct", "2", "The new server is in Bonn."),
        ("memory", "add", "A secret plan."),
        ("memory", "forget", "4", "--yes"),
        ("run", "remember that I like tea", "--session", "s1"),
        ("memory", "off", "s1"),
    ):
        assert 0 == beaver(owner_home, *words).code, words
    (project / ".beaver" / "plugins" / "curated" / "MEMORY.md").write_text(
        "Tests run with make.\n§\nUse British English."
    )
    return owner_home


def beaver(owner_home: Path, *words: object) -> Ran:
    """Run a command in the project of a home."""
    env = environment(HOME=owner_home, BEAVER_CONFIG=owner_home / "project/.beaver/config.json")
    return run_beaver(*words, cwd=owner_home / "project", env=env)


@pytest.fixture(scope="module")
def archived(filled, tmp_path_factory):
    """A backup of that home, which no test changes."""
    path = tmp_path_factory.mktemp("archived") / "b.zip"
    assert 0 == beaver(filled, "backup", path).code
    return path


@pytest.fixture
def owner_home(filled, tmp_path, monkeypatch):
    """A copy of that home, in whose project the commands run."""
    folder = shutil.copytree(filled, tmp_path / "home")
    enter(folder, monkeypatch)
    return folder


def enter(owner_home: Path, monkeypatch) -> Path:
    """Make a folder the home, and its project the working directory, with the configuration; return the project."""
    project = owner_home / "project"
    (project / ".beaver").mkdir(parents=True, exist_ok=True)
    (project / ".beaver" / "config.json").write_text(json.dumps(CONFIG))
    monkeypatch.setenv("HOME", str(owner_home))
    monkeypatch.setenv("BEAVER_CONFIG", str(project / ".beaver" / "config.json"))
    monkeypatch.chdir(project)
    return project


def content(cli) -> dict[str, str]:
    """Return everything that the commands show of the stored state."""
    shown = (
        ("memory", "export", "--all"), ("memory", "show", "1"), ("memory", "show", "3"), ("memory", "stats", "--json"),
        ("memory", "curated", "show"), ("sessions", "export"), ("audit", "verify", "--json"), ("audit", "tail", "--json"),
        ("why", "--json"),
    )  # fmt: skip
    return {" ".join(words): cli(*words).out for words in shown}


def stored_bytes(folder: Path) -> dict[str, bytes]:
    """Return every file of the state in a home, but the configuration and empty files of locks."""
    kept = (each for each in folder.rglob("*") if each.is_file() and ".beaver" in each.parts)
    return {str(each.relative_to(folder)): each.read_bytes() for each in kept if not each.name.endswith("lock")}


def databases(folder: Path) -> list[str]:
    return sorted(str(each.relative_to(folder)) for each in folder.rglob("*.db"))


# --- A round trip ---------------------------------------------------------------------------------------------------


def test_everything_comes_back(cli, owner_home, tmp_path, monkeypatch):
    """A restore into an empty project gives the same memories, ids, histories, files, conversations and trail."""
    made = cli("backup", tmp_path / "b.zip", "--json")
    before = content(cli)
    new = tmp_path / "new"
    enter(new, monkeypatch)
    restored = cli("restore", tmp_path / "b.zip", "--json")

    assert (0, 0) == (made.code, restored.code)
    held = {"curated": {"entries": 3, "changes": 1}, "local": {"memories": 5, "forgotten memories": 1, "embeddings": 0}}
    assert held == {name: made.json["held"][name] for name in held}
    assert {"sessions": 1, "messages": 2} == {
        name: made.json["held"]["host"][name] for name in ("sessions", "messages")
    }
    assert {"curated": 3, "local": 5} == {
        "curated": restored.json["restored"]["curated"]["added"]["entries"],
        "local": restored.json["restored"]["local"]["added"]["memories"],
    }
    assert before["memory export --all"].count("\n") == 5
    assert before | {"memory stats --json": ""} == content(cli) | {"memory stats --json": ""}
    assert (owner_home / "project/.beaver/memory-off.json").read_bytes() == (
        new / "project/.beaver/memory-off.json"
    ).read_bytes()
    assert databases(owner_home) == databases(new)
    assert {0o600} == {stat.S_IMODE(each.stat().st_mode) for each in new.rglob("*.db")}


def test_a_backup_changes_nothing(cli, owner_home, tmp_path):
    """Neither making nor verifying a backup changes a stored file, and nothing but the archive is left."""
    before = stored_bytes(owner_home)
    cli("backup", tmp_path / "out" / "b.zip")
    cli("backup", "verify", tmp_path / "out" / "b.zip")

    assert before == stored_bytes(owner_home)
    assert ["b.zip"] == names(tmp_path / "out")
    assert 0o600 == stat.S_IMODE((tmp_path / "out" / "b.zip").stat().st_mode)


def test_a_dry_run_changes_nothing(cli, owner_home, archived, tmp_path, monkeypatch):
    """The dry run of a restore says what it would restore and makes no file; nor does that of a merge."""
    merged = cli("restore", archived, "--merge", "--dry-run")
    new = tmp_path / "new"
    enter(new, monkeypatch)
    restored = cli("restore", archived, "--dry-run")

    assert (0, 0) == (merged.code, restored.code)
    assert "  local: nothing new (memories 5 were there)\n" in merged.out
    assert "  local: memories 5, forgotten memories 1\n" in restored.out
    assert ["project/.beaver/config.json"] == list(stored_bytes(new))


def test_one_part_can_be_backed_up_and_restored(cli, owner_home, archived, tmp_path, monkeypatch):
    """`--only person` takes the shared memories and nothing of the project, at both ends."""
    person = cli("backup", tmp_path / "p.zip", "--only", "person", "--json")
    new = tmp_path / "new"
    enter(new, monkeypatch)
    cli("restore", archived, "--only", "person")

    assert {"curated": {"entries": 1, "changes": 1}, "host": {}} == {
        name: person.json["held"][name] for name in ("curated", "host")
    }
    assert 1 == person.json["held"]["local"]["memories"]
    assert [".beaver/plugins/local/memory.db"] == databases(new)
    assert "Ann prefers tea." in cli("memory", "list").out


def test_a_backup_can_be_looked_at_elsewhere(cli, owner_home, archived, tmp_path):
    """`--to` restores into two new folders, one for the project and one for the person, and leaves the state alone."""
    before = stored_bytes(owner_home)
    ran = cli("restore", archived, "--to", tmp_path / "look")

    assert (0, before) == (ran.code, stored_bytes(owner_home))
    assert [
        "person/.beaver/plugins/local/memory.db", "project/.beaver/host.db",
        "project/.beaver/plugins/local/memory.db", "project/.beaver/sessions.db",
    ] == databases(tmp_path / "look")  # fmt: skip


@pytest.mark.parametrize(("plugin", "key"), [("local", "databasePath"), ("curated", "folder")])
def test_a_named_place_is_never_written_instead_of_the_folder(cli, owner_home, archived, plugin, key):
    """Where the configuration puts a plugin's files elsewhere, `--to` is refused: it would restore over them."""
    memory = {**CONFIG["memory"], plugin: {**CONFIG["memory"].get(plugin, {}), key: str(owner_home / "elsewhere")}}
    (owner_home / "project/.beaver/config.json").write_text(json.dumps(CONFIG | {"memory": memory}))
    ran = cli("restore", archived, "--to", owner_home / "look", "--merge")

    assert (2, False, False) == (ran.code, (owner_home / "elsewhere").exists(), (owner_home / "look").exists())
    assert f"gives {plugin} a place of its own (`{key}`)" in ran.err


# --- Names, folders, old backups ------------------------------------------------------------------------------------


def test_a_backup_gets_a_name_with_the_date(cli, owner_home):
    """Without a name it is in a private folder of the home directory, named after the project and the moment."""
    ran = cli("backup", "--json")
    path = Path(ran.json["file"])

    assert owner_home / "beaver-backups" == path.parent
    assert 0o700 == stat.S_IMODE(path.parent.stat().st_mode)
    assert re.fullmatch(r"beaver-project-\d{8}T\d{6}Z\.zip", path.name)
    listed = cli("backup", "list", "--json").json["backups"]
    assert [{name: ran.json[name] for name in listed[0]}] == listed
    assert "A backup still holds what was forgotten after it was made" in cli("backup", "list").out


def test_the_oldest_backups_of_the_project_are_deleted(cli, owner_home, tmp_path):
    """`--keep` counts the backups of this state folder; those of others, and other files, stay."""
    folder, places = tmp_path / "b", Places(state=owner_home / "project/.beaver", person=owner_home / ".beaver")
    stored = Stored.under(load_config(), places, {})
    other = Stored.under(load_config(), Places(state=owner_home / ".beaver", person=owner_home / ".beaver"), {})
    start = datetime(2026, 7, 1, tzinfo=UTC)
    for number in range(3):
        make_backup(
            stored,
            folder / f"beaver-project-{number}.zip",
            parts=("project",),
            now=start + timedelta(number),
            waiting=nullcontext,
        )
    make_backup(other, folder / "beaver-other.zip", parts=("project",), now=start, waiting=nullcontext)
    make_backup(stored, folder / "mine.zip", parts=("project",), now=start, waiting=nullcontext)
    (folder / "broken.zip").write_text("no backup")
    ran = cli("backup", "--to", folder, "--keep", "2", "--json")

    newest = Path(ran.json["file"]).name
    assert ["beaver-project-0.zip", "beaver-project-1.zip"] == [Path(each).name for each in ran.json["deleted"]]
    assert sorted(["beaver-other.zip", "beaver-project-2.zip", newest, "broken.zip", "mine.zip"]) == names(folder)
    assert "broken.zip  damaged, or no backup\n" in cli("backup", "list", folder).out


def names(folder: Path) -> list[str]:
    """Return the names in a folder, none for a missing one."""
    return sorted(each.name for each in folder.glob("*"))


def test_an_existing_file_is_never_replaced(cli, owner_home, tmp_path):
    """A backup over an existing file is refused, whatever the file holds."""
    (tmp_path / "b.zip").write_text("mine")
    ran = cli("backup", tmp_path / "b.zip")

    assert (2, "mine") == (ran.code, (tmp_path / "b.zip").read_text())
    assert f"The file {tmp_path / 'b.zip'} exists; name another one." in ran.err


def test_a_backup_inside_of_the_state_is_refused(cli, owner_home):
    """A file in the state folder would be lost with it."""
    ran = cli("backup", owner_home / "project" / ".beaver" / "b.zip")

    assert 5 == ran.code
    assert "is inside of the state folder, and would be lost with it" in ran.err


def test_a_file_and_a_folder_cannot_both_be_named(cli, owner_home, tmp_path):
    """The name of a file leaves nothing for `--to` and `--keep` to say."""
    assert 2 == cli("backup", tmp_path / "b.zip", "--to", tmp_path).code


def test_nothing_stored_is_said(cli, tmp_path, monkeypatch):
    """Without a state folder there is no backup, and the error says why."""
    monkeypatch.setenv("HOME", str(tmp_path / "empty"))
    ran = cli("backup", tmp_path / "b.zip")

    assert (5, False) == (ran.code, (tmp_path / "b.zip").exists())
    assert "Nothing is stored yet" in ran.err


def test_an_empty_folder_has_no_backups(cli, tmp_path):
    """Listing a folder without backups says so."""
    assert f"There are no backups in {tmp_path}.\n" == cli("backup", "list", tmp_path).out


# --- Merging --------------------------------------------------------------------------------------------------------


def test_a_merge_adds_what_is_missing(cli, owner_home, archived, tmp_path, monkeypatch):
    """Another project gets the memories, entries and conversations that it lacks, and keeps its own trail."""
    new = tmp_path / "new"
    enter(new, monkeypatch)
    cli("memory", "add", "The old server is in Ulm.")
    cli("memory", "add", "Only here.")
    cli("run", "remember that I like coffee", "--session", "s2")
    ran = cli("restore", archived, "--merge", "--json")
    again = cli("restore", archived, "--merge", "--json")

    texts = {json.loads(line)["title"] for line in cli("memory", "export", "--all").out.splitlines()}
    assert {
        "Only here.", "The deploy key rotates on Mondays.", "Ann prefers tea.", "The old server is in Ulm.",
        "The new server is in Bonn.",
    } <= texts  # fmt: skip
    assert {"s1", "s2"} == {each["id"] for each in cli("sessions", "list", "--json").json["sessions"]}
    assert 1 == ran.json["restored"]["host"]["added"]["sessions"]
    assert "stay as they are" in ran.json["restored"]["host"]["notes"][0]
    assert [0, 0, 0] == [sum(each["added"].values()) for each in again.json["restored"].values()]
    assert 0 == cli("audit", "verify").code
    assert "No problem found" in cli("memory", "check").out or 0 == cli("memory", "check").code


def test_the_present_state_wins_and_is_named(cli, owner_home, archived):
    """A memory forgotten or pinned, and a session changed, since the backup stay so, and the merge names them."""
    cli("memory", "forget", "1", "--yes")
    cli("memory", "pin", "3")
    cli("run", "and I like cake", "--session", "s1")
    with apsw.Connection(str(owner_home / "project/.beaver/sessions.db")) as connection:
        connection.execute("UPDATE messages SET text = CAST('other' AS BLOB) WHERE number = 1")
    before = content(cli)
    ran = cli("restore", archived, "--merge")

    assert before == content(cli)
    assert "    Memory 1 was forgotten since, and stays forgotten.\n" in ran.out
    assert "    Memory 3 was changed since, and stays as it is.\n" in ran.out
    assert "    The session s1 was changed since, and stays as it is.\n" in ran.out


def test_a_shorter_conversation_is_continued(cli, owner_home, tmp_path, monkeypatch):
    """A session that stopped earlier here gets the rest of its messages from the backup."""
    cli("backup", tmp_path / "early.zip")
    cli("run", "and I like cake", "--session", "s1")
    cli("backup", tmp_path / "late.zip")
    late = cli("sessions", "show", "s1").out
    enter(tmp_path / "new", monkeypatch)
    cli("restore", tmp_path / "early.zip")
    cli("restore", tmp_path / "late.zip", "--merge")

    assert late == cli("sessions", "show", "s1").out


# --- Refusals -------------------------------------------------------------------------------------------------------


def test_existing_state_is_refused(cli, owner_home, archived):
    """Without `--merge` a restore over existing state changes nothing, and names the first file and the remedy."""
    before = stored_bytes(owner_home)
    ran = cli("restore", archived)

    assert (6, before) == (ran.code, stored_bytes(owner_home))
    assert "is there already; move it away, or restore with --merge." in ran.err


@pytest.mark.parametrize(
    "name", ["sessions.db", "host.db", "audit.key", "memory-off.json", "plugins/local/memory.db-wal"]
)
def test_a_single_file_is_enough_to_refuse(cli, archived, tmp_path, monkeypatch, name):
    """Any file of the state that is there, also a log without its database, stays as it is; nothing else is restored."""
    new = tmp_path / "new"
    path = enter(new, monkeypatch) / ".beaver" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("mine")
    before = stored_bytes(new)
    ran = cli("restore", archived)

    assert (True, before) == (ran.code in {5, 6}, stored_bytes(new))
    assert str(path).removesuffix("-wal") in ran.err


def test_a_database_that_a_process_has_lost_is_refused(cli, owner_home, archived):
    """While a process has the removed files open, nothing is put in their place: it would go on with its own."""
    path = owner_home / "project/.beaver/sessions.db"
    database = Database.read(path, read_migrations("beaver_hooks.agent.sessions"))
    for each in path.parent.glob("sessions.db*"):
        each.unlink()
    shutil.rmtree(owner_home / "project/.beaver/plugins")
    shutil.rmtree(owner_home / ".beaver")
    for name in ("host.db", "audit.key", "memory-off.json"):
        (owner_home / "project/.beaver" / name).unlink()
    refused = cli("restore", archived)
    database.close()
    restored = cli("restore", archived)

    assert (5, 0) == (refused.code, restored.code)
    assert "is used by a process that has lost its -wal or -shm file; end that process" in refused.err


def test_two_parts_do_not_fit_into_one_folder(cli, owner_home, archived, tmp_path, monkeypatch):
    """In the home directory, project and person are one folder: the restore asks for one of them, or a project."""
    monkeypatch.setenv("HOME", str(tmp_path / "new"))
    monkeypatch.delenv("BEAVER_CONFIG")
    (tmp_path / "new").mkdir()
    monkeypatch.chdir(tmp_path / "new")
    ran = cli("restore", archived)

    assert 5 == ran.code
    assert "is one folder for both; go to a folder with a `.beaver` of its own" in ran.err


def test_a_plugin_that_is_off_is_named(cli, owner_home, archived, tmp_path, monkeypatch):
    """A plugin that is off is neither copied nor restored, and both commands say so."""
    project = enter(tmp_path / "new", monkeypatch)
    (project / ".beaver/config.json").write_text(json.dumps({"memory": {"mode": "curated"}}))
    restored = cli("restore", archived)
    (owner_home / "project/.beaver/config.json").write_text(json.dumps({"memory": {"mode": "curated"}}))
    monkeypatch.setenv("BEAVER_CONFIG", str(owner_home / "project/.beaver/config.json"))
    made = cli("backup", tmp_path / "c.zip")

    assert (0, 0) == (restored.code, made.code)
    assert "The state of local was not restored: that plugin is not installed, or is off;" in restored.err
    assert (
        f"The files in {owner_home / 'project/.beaver/plugins/local'} are not in it: the plugin local is off"
        in made.out
    )


# --- Faults ---------------------------------------------------------------------------------------------------------


def test_damaged_state_is_kept_and_said(cli, owner_home, tmp_path):
    """A backup of a damaged memory is made, names the row and exits with 1, and so does verifying it."""
    path = owner_home / "project/.beaver/plugins/local/memory.db"
    with apsw.Connection(str(path)) as connection:
        connection.execute("UPDATE observations SET narrative = 'forged' WHERE id = 1")
    made = cli("backup", tmp_path / "b.zip", "--json")
    verified = cli("backup", "verify", tmp_path / "b.zip")

    assert (1, 1) == (made.code, verified.code)
    assert ["local: Memory 1 fails its checksum"] == [each.partition(" and")[0] for each in made.json["problems"]]
    assert "Problem: local: Memory 1 fails its checksum" in verified.err


def test_a_forged_trail_is_said(cli, owner_home, tmp_path):
    """A record of the audit trail that was changed makes the backup exit with 1 and name the record."""
    with apsw.Connection(str(owner_home / "project/.beaver/host.db")) as connection:
        connection.execute("DROP TRIGGER audit_keeps_what_it_has")
        connection.execute("UPDATE audit SET name = 'other' WHERE seq = 2")
    made = cli("backup", tmp_path / "b.zip", "--json")

    assert (1, ["host: record 2 of the audit trail is wrong (changed)"]) == (made.code, made.json["problems"])


def test_a_damaged_archive_is_refused(cli, owner_home, archived, tmp_path, monkeypatch):
    """Neither `verify` nor `restore` accepts an archive in which a byte differs; nothing is restored."""
    path = tmp_path / "b.zip"
    content = bytearray(archived.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    new = tmp_path / "new"
    enter(new, monkeypatch)
    verified, restored = cli("backup", "verify", path), cli("restore", path)

    assert (5, 5) == (verified.code, restored.code)
    assert "is damaged" in restored.err
    assert "use another backup" in restored.err
    assert ["project/.beaver/config.json"] == list(stored_bytes(new))


@contextmanager
def room(size):
    """Let no file grow beyond a size, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_leaves_no_backup(cli, owner_home, tmp_path):
    """Whenever the disk is full while a backup is written, there is no file and one sentence with the remedy."""
    seen = []
    for size in (1_000, 30_000, 100_000, 146_000):
        folder = tmp_path / str(size)
        with room(size):
            ran = cli("backup", folder / "b.zip")
        seen.append((ran.code in {5, 6}, ran.out, names(folder)))
        assert "make room" in ran.err

    assert [(True, "", [])] * 4 == seen


def test_a_disk_that_fills_up_during_a_restore_leaves_nothing_half(cli, owner_home, archived, tmp_path, monkeypatch):
    """The parts that were restored are named and whole; `--merge` restores the rest when there is room."""
    before = cli("memory", "export", "--all").out
    enter(tmp_path / "new", monkeypatch)
    written = restore._written

    def limited(*args, **options):
        with room(100_000):
            return written(*args, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(restore, "_written", limited)
        ran = cli("restore", archived)
    names = databases(tmp_path / "new")
    cli("restore", archived, "--merge")

    assert 5 == ran.code
    assert "Only this was restored: curated; when the cause is mended, restore the rest with --merge." in ran.err
    assert [] == names
    assert before == cli("memory", "export", "--all").out


def test_a_folder_that_cannot_be_written_is_said(cli, owner_home, tmp_path):
    """A folder whose place is taken by a file gives one sentence."""
    (tmp_path / "file").write_text("")
    ran = cli("backup", tmp_path / "file" / "b.zip")

    assert 5 == ran.code
    assert "cannot be written" in ran.err


def test_an_archive_that_is_not_read_back_is_no_backup(cli, owner_home, tmp_path, monkeypatch):
    """A disk that writes other bytes than it was given is noticed before the backup gets its name."""
    write = archive.write_archive

    def lying(path, *rest):
        write(path, *rest)
        content = bytearray(path.read_bytes())
        content[len(content) // 3] ^= 64
        path.write_bytes(content)

    monkeypatch.setattr(backup, "write_archive", lying)
    ran = cli("backup", tmp_path / "out" / "b.zip")

    assert (5, []) == (ran.code, names(tmp_path / "out"))


@pytest.mark.parametrize(("fault", "hook"), BACKUP_CASES, ids=str)
def test_a_plugin_that_fails_is_a_problem_of_the_backup(cli, owner_home, install, fault, hook):
    """A plugin with files that cannot offer its backup is named, and the exit code is 1; the rest is backed up."""
    install("faulty", faulty(owner_home / "project/.beaver/plugins/faulty", fault, hook))
    ran = cli("backup", owner_home / "b.zip", "--json")

    assert (1, 5) == (ran.code, ran.json["held"]["local"]["memories"])
    assert 1 == len(ran.json["problems"])
    assert ran.json["problems"][0].startswith("host: The plugin faulty could not be asked for its state: ")
    assert fault in set(Fault)


KEEPER = """
from beaver_hostspecs import BackupReport, PluginInfo, RestoreReport, StateBackup, hookimpl

OTHER, answers = BackupReport(held={{"notes": 2}}), []

def check(_):
    return answers.pop() if answers else BackupReport(held={{"notes": 1}})

def write(folder):
    (folder / "project").mkdir()
    (folder / "project" / {name!r}).write_text("kept")
    return {written}

class Plugin:
    @hookimpl
    def describe(self):
        return PluginInfo(version="7", contract="1.0")

    @hookimpl
    def provide_backup(self):
        return StateBackup(write=write, check=check, restore=lambda _: RestoreReport())
"""


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (("notes", "1 / 0"), "the plugin `keeper` could not copy its state: it raised ZeroDivisionError; report this"),
        (("notes", "[1]"), "the plugin `keeper` could not copy its state: it raised TypeError; report this"),
        (
            ("notes", "answers.append(None) or ()"),
            "`keeper` could not examine its copy: it returned a NoneType; report this",
        ),
        (("notes", "answers.append(OTHER) or ()"), "was not written as it should be"),
        (
            ("a:b", "()"),
            "The file plugins/keeper/project/a:b has a name that a backup cannot hold; rename it.",
        ),
    ],
)
def test_a_plugin_that_copies_wrongly_ends_the_backup(cli, owner_home, install, code, error):
    """A plugin that raises, answers the wrong type, miscounts or writes an odd name: there is no backup, and it is named."""
    install("keeper", KEEPER.format(name=code[0], written=code[1]))
    ran = cli("backup", owner_home / "out" / "b.zip")

    assert (True, []) == (ran.code in {5, 6}, names(owner_home / "out"))
    assert error in ran.err


def test_a_plugin_from_elsewhere_takes_part(cli, owner_home, install):
    """Any plugin with the hook has its part in the archive; one without files and hook is not mentioned."""
    install("keeper", KEEPER.format(name="notes", written='["A note."]'))
    made = cli("backup", owner_home / "b.zip", "--json")
    restored = cli("restore", owner_home / "b.zip", "--to", owner_home / "look", "--json")

    assert ({"notes": 1}, ["A note."]) == (made.json["held"]["keeper"], made.json["notes"])
    assert {"added": {}, "present": {}, "conflicts": [], "notes": []} == restored.json["restored"]["keeper"]


# --- Faults of the host's own state ---------------------------------------------------------------------------------


def state_of(owner_home: Path) -> Path:
    return owner_home / "project" / ".beaver"


@pytest.mark.parametrize(
    ("spoil", "code", "error"),
    [
        (lambda state: overwrite(state / "sessions.db"), 5, "The session store"),
        (lambda state: overwrite(state / "host.db"), 5, "The audit trail"),
        (lambda state: relink(state / "audit.key"), 5, "audit.key cannot be read"),
        (lambda state: (state / "audit.key").unlink(), 1, "the key audit.key of the audit trail is missing"),
        (lambda state: spoil_message(state / "sessions.db"), 1, "fails its checksum"),
        (lambda state: spoil_receipt(state / "host.db"), 1, "fails its checksum"),
    ],
    ids=["sessions", "trail", "linked key", "no key", "message", "receipt"],
)
def test_damage_of_the_hosts_files_is_named(cli, owner_home, spoil, code, error):
    """A file that cannot be read ends the backup; damage within one is kept, and makes the exit code 1."""
    spoil(state_of(owner_home))
    ran = cli("backup", owner_home / "b.zip")

    assert (code, code == 1) == (ran.code, (owner_home / "b.zip").exists())
    assert error in ran.err


def overwrite(path: Path) -> None:
    for each in path.parent.glob(f"{path.name}-*"):
        each.unlink()
    path.write_bytes(b"no database, but a long text " * 400)


def relink(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to(path.with_name("elsewhere"))


def spoil_message(path: Path) -> None:
    with apsw.Connection(str(path)) as connection:
        connection.execute("UPDATE messages SET text = CAST('forged' AS BLOB) WHERE number = 1")


def spoil_receipt(path: Path) -> None:
    with apsw.Connection(str(path)) as connection:
        connection.execute("UPDATE receipts SET body = '{}'")


def test_a_loss_of_commits_is_told(cli, owner_home):
    """A database that has lost acknowledged commits is backed up, and the backup says so."""
    path = state_of(owner_home) / "plugins" / "local" / "memory.db"
    path.with_name("memory.db.losses").write_text(json.dumps([[9, 7, "", False]]))
    ran = cli("backup", owner_home / "b.zip", "--json")

    assert (0, 1) == (ran.code, len(ran.json["notes"]))
    assert f"{path}: 2 commits that were acknowledged are missing" in ran.json["notes"][0]


def test_a_restored_older_state_is_no_loss(cli, owner_home, archived):
    """After a restore in the place of a lost, newer state, nothing counts the commits that the backup does not have."""
    cli("memory", "add", "One more.")
    cli("run", "hello", "--session", "s3")
    for folder in (state_of(owner_home), owner_home / ".beaver"):
        for path in [*folder.rglob("*.db*"), *folder.rglob("*.md"), *folder.rglob("*.jsonl")]:
            if not path.name.startswith("."):
                path.unlink()
        for path in folder.rglob(".*.jsonl"):
            path.unlink()
    for name in ("audit.key", "memory-off.json"):
        (state_of(owner_home) / name).unlink()
    restored = cli("restore", archived)

    assert 0 == restored.code, restored.err
    assert "One more." not in cli("memory", "list").out
    assert (0, 0) == (cli("memory", "check").code, cli("audit", "verify").code)
    assert "commits" not in cli("doctor").out


def test_leftovers_of_a_killed_backup_are_removed(cli, owner_home, tmp_path):
    """The next backup removes what a killed one left beside it, once that is a day old."""
    old, new = tmp_path / "out" / ".beaver-backup-1.tmp", tmp_path / "out" / ".beaver-backup-2.tmp"
    for each in (old, new):
        each.mkdir(parents=True)
    os.utime(old, (0, 0))
    cli("backup", tmp_path / "out" / "b.zip")

    assert (False, True) == (old.exists(), new.exists())


def test_a_backup_of_another_moment_is_not_replaced(cli, owner_home, tmp_path, monkeypatch):
    """A file that another process makes under the same name meanwhile stays."""
    write = archive.write_archive

    def late(path, *rest):
        write(path, *rest)
        (tmp_path / "b.zip").write_text("other")

    monkeypatch.setattr(backup, "write_archive", late)
    ran = cli("backup", tmp_path / "b.zip")

    assert (5, "other") == (ran.code, (tmp_path / "b.zip").read_text())


def test_sessions_that_git_lists_are_not_backed_up(cli, owner_home, monkeypatch):
    """Conversations that may be another person's are refused, as every other command refuses them."""
    state = state_of(owner_home)
    monkeypatch.setattr("beaver_hooks.file_trust.StateFiles.is_listed", lambda _, path: path.name == "sessions.db")
    ran = cli("backup", owner_home / "b.zip")

    assert (5, False) == (ran.code, (owner_home / "b.zip").exists())
    assert f"Git's index lists {state / 'sessions.db'}" in ran.err
