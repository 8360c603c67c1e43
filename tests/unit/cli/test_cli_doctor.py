"""`beaver doctor` and its findings."""

import asyncio
import contextlib
import json
import os
import shutil
import stat
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import apsw
import click
import pytest

from beaver_hooks.agent.factory import EngineLoader
from beaver_hooks.agent.loop import AgentLoop
from beaver_hooks.audit.trail import Trail
from beaver_hooks.cli.checks import databases, files, health, memories
from beaver_hooks.cli.checks.findings import ok, problem, warning
from beaver_hooks.config import LoadedConfig, parse_config, trust_config
from beaver_hooks.receipts.health import Health
from beaver_hostspecs import PluginFailed
from beaver_toolkit.sqlite.database import Database
from beaver_toolkit.sqlite.migrations import read_migrations

CONFIG = '{"memory": {"mode": "curated"}, "plugins": {"disabled": ["tally", "gateway", "local", "server"]}}'


class Usage(NamedTuple):
    """The free space of a disk."""

    free: int


@pytest.fixture(scope="module")
def used(tmp_path_factory):
    """A state folder in which an agent has run once."""
    folder = tmp_path_factory.mktemp("used") / ".beaver"

    async def run() -> None:
        config = LoadedConfig(config=parse_config(CONFIG), path=None, trusted_by=None, state_folder=folder)
        async with await EngineLoader(config).load() as engine:
            await AgentLoop(engine).run("remember that I like tea")

    asyncio.run(run())
    return folder


@pytest.fixture
def state(used, scratch):
    """A copy of that folder in the place where the commands look for it."""
    return shutil.copytree(used, scratch / ".beaver")


def findings(ran) -> dict[str, tuple[str, str]]:
    """Return level and text of each finding by its subject; of several on one subject the worst."""
    order = ["ok", "warning", "problem"]
    found = sorted(ran.json["findings"], key=lambda each: order.index(each["level"]))
    return {each["subject"]: (each["level"], each["text"]) for each in found}


def problems(ran) -> list[tuple[str, str]]:
    return [(each["subject"], each["text"]) for each in ran.json["findings"] if each["level"] == "problem"]


def store_health(state, **bodies) -> None:
    """Store the health of plugins, as a host does."""
    with contextlib.closing(Trail.open(state)) as trail:
        for name, body in bodies.items():
            trail.put_health(name, body)


def change(path, statement) -> None:
    """Change a database behind its owner's back."""
    with contextlib.closing(apsw.Connection(str(path))) as connection:
        connection.execute(statement)


def contents(folder) -> dict[str, object]:
    """Return everything in a folder: names, modes, bytes."""
    return {
        str(path): (stat.S_IMODE(path.lstat().st_mode), path.read_bytes() if path.is_file() else None)
        for path in sorted(folder.rglob("*"))
    }


def test_all_is_well(cli, state, tmp_path):
    """A used state folder is sound, and the examination changes no file."""
    before = contents(tmp_path)
    ran = cli("doctor", "--json")

    assert (0, True, []) == (ran.code, ran.json["ok"], problems(ran))
    found = findings(ran)
    assert ("ok", "no configuration has been confirmed") == found["confirmations"]
    assert ("ok", f"{state}/sessions.db is sound") == found["sessions"]
    assert ("ok", f"{state}/host.db is sound") == found["audit trail"]
    assert "ok" == found["audit chain"][0]
    assert ("ok", "ok") == found["host"]
    assert before == contents(tmp_path)


def test_nothing_is_kept(cli, scratch, tmp_path):
    """Without a state folder the doctor reports that nothing is stored, and creates nothing."""
    ran = cli("doctor")

    assert 0 == ran.code
    assert f"{scratch}/.beaver does not exist yet: nothing is stored" in ran.out.replace("\n         ", " ")
    assert [scratch] == list(tmp_path.rglob("*"))


def test_empty_state_folder(cli, scratch):
    """A state folder without databases is sound."""
    (scratch / ".beaver").mkdir(mode=0o700)
    found = findings(cli("doctor", "--json"))

    assert ("ok", "no conversations are stored") == found["sessions"]
    assert ("ok", "nothing is recorded") == found["audit trail"]
    assert "audit chain" not in found


@pytest.mark.parametrize("name", ["sessions.db", "host.db"])
@pytest.mark.parametrize("damage", ["overwritten", "cut", "emptied", "a folder", "a pipe"])
def test_damaged_databases(cli, state, name, damage):
    """A damaged database is a problem, and the other database is still examined."""
    path, content = state / name, (state / name).read_bytes()
    path.unlink()
    {
        "overwritten": lambda: path.write_bytes(b"garbage " * 1000),
        "cut": lambda: path.write_bytes(content[: len(content) // 2 // 4096 * 4096]),
        "emptied": lambda: path.write_bytes(b""),
        "a folder": lambda: path.mkdir(mode=0o700),
        "a pipe": lambda: os.mkfifo(path, 0o600),
    }[damage]()
    ran = cli("doctor", "--json")
    subject, other = ("sessions", "audit trail") if name == "sessions.db" else ("audit trail", "sessions")

    assert 1 == ran.code
    assert "problem" == findings(ran)[subject][0]
    assert "ok" == findings(ran)[other][0]


@pytest.mark.parametrize(
    ("name", "package"), [("sessions.db", "beaver_hooks.agent.sessions"), ("host.db", "beaver_hooks.audit")]
)
def test_missing_commits(cli, state, name, package):
    """A database that lost acknowledged commits is a problem, with the command that accepts the loss, until it is run."""
    path, older = state / name, (state / name).read_bytes()
    with contextlib.closing(Database.open(path, read_migrations(package))) as database:
        for _ in range(3):
            with database.transaction() as connection:
                connection.execute("CREATE TABLE IF NOT EXISTS more (x); INSERT INTO more VALUES (1)")
    path.write_bytes(older)
    ran = cli("doctor", "--json")
    problem = next(each for each in ran.json["findings"] if each["subject"] == name)

    assert (1, "problem") == (ran.code, problem["level"])
    assert "3 commits that were acknowledged are missing: the database is older" in problem["text"]
    assert f"restore a backup, or accept the loss with `beaver doctor --accept-loss {path}`" == problem["remedy"]
    accepted = cli("doctor", "--json", "--accept-loss", path)
    assert name not in findings(accepted)
    assert ("ok", f"3 commits of {path}") == findings(accepted)["accepted"]
    assert name not in findings(cli("doctor", "--json"))


def test_accepting_a_loss_that_is_none(cli, scratch):
    """A database without a loss is refused, with every other one of the same command, and no file is deleted."""
    for name in ("notes.db", "notes.db-wal.damaged-7", "lossy.db.losses"):
        (scratch / name).write_text('[[9, 7, "", false]]')
    ran = cli("doctor", "--accept-loss", scratch / "lossy.db", "--accept-loss", scratch / "notes.db")

    assert (2, True) == (ran.code, f"no commits are known to be missing from {scratch}/notes.db." in ran.err)
    assert {"notes.db", "notes.db-wal.damaged-7", "lossy.db.losses"} <= {each.name for each in scratch.iterdir()}


def test_damage_inside(cli, state):
    """The doctor shows the damage that SQLite finds inside a database."""
    change(
        state / "sessions.db",
        "PRAGMA writable_schema = 1; UPDATE sqlite_schema"
        " SET sql = 'CREATE INDEX sessions_by_user ON sessions (id, updated)' WHERE name = 'sessions_by_user'",
    )
    ran = cli("doctor", "--json")

    assert 1 == ran.code
    text = f"{state}/sessions.db is damaged: row 1 missing from index sessions_by_user"
    assert ("problem", text) == findings(ran)["sessions"]


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("INSERT INTO schema_version VALUES (99, 0)", "newer version"),
        ("DROP TABLE sessions", "is not a database of sessions"),
    ],
)
def test_sessions_that_are_not_ours(cli, state, statement, expected):
    """A database of a newer version or of another program is a problem, and is not called damaged."""
    change(state / "sessions.db", statement)

    assert expected in findings(cli("doctor", "--json"))["sessions"][1]


def test_forged_chain(cli, state):
    """The doctor names a changed record of the audit chain."""
    change(state / "host.db", "DROP TRIGGER audit_keeps_what_it_has; UPDATE audit SET name = 'nothing' WHERE seq = 1")
    ran = cli("doctor", "--json")

    assert [("audit chain", "record 1 is wrong (changed) after 0 good records")] == problems(ran)


def test_a_file_in_a_folder_that_only_its_owner_can_enter(cli, state):
    """Readable files in a folder that only its owner can enter are no problem; an open folder and its files are."""
    folder = state / "plugins" / "curated"
    for path in (folder / "USER.md", state / "sessions.db"):
        path.chmod(0o644)
    shut = problems(cli("doctor", "--json"))
    for path in (state, folder.parent, folder):
        path.chmod(0o755)
    open_ = f"other users can read them: {state}, {folder.parent}, {state}/sessions.db and 2 more"

    assert ([], [("files of the state folder", open_)]) == (shut, problems(cli("doctor", "--json")))


def test_lost_key(cli, state):
    """A trail without its key cannot be verified, which is a problem; so is a key without its trail."""
    key = (state / "audit.key").read_bytes()
    (state / "audit.key").unlink()
    assert "problem" == findings(cli("doctor", "--json"))["audit chain"][0]

    (state / "audit.key").touch(0o600)
    (state / "audit.key").write_bytes(key)
    (state / "host.db").unlink()
    assert ("problem", "its key audit.key is there, and host.db is gone") == findings(cli("doctor", "--json"))[
        "audit trail"
    ]


def test_loose_permissions(cli, state):
    """The doctor names files that others can read or change, and the command that fixes them; it changes no file."""
    memory = state / "plugins" / "curated" / "USER.md"
    for path, mode in ((state, 0o755), (state / "audit.key", 0o644), (memory, 0o666), (state / ".gitignore", 0o644)):
        path.chmod(mode)
    ran = cli("doctor", "--json")

    assert [
        ("files of the state folder", f"other users can change them: {memory}"),
        ("files of the state folder", f"other users can read them: {state}, {state}/audit.key"),
        ("audit chain", "not verified: other users may read audit.key, so they could forge records"),
    ] == problems(ran)
    assert f"run: chmod -R go= {state}" in [each["remedy"] for each in ran.json["findings"]]
    assert 0o644 == stat.S_IMODE((state / "audit.key").stat().st_mode)


def test_links_and_owners(cli, state, scratch, monkeypatch):
    """A symbolic link in place of a file, files of another user and unreadable files are problems."""
    (scratch / "elsewhere").write_bytes((state / "audit.key").read_bytes())
    (state / "audit.key").unlink()
    (state / "audit.key").symlink_to(scratch / "elsewhere")
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    texts = [text for subject, text in problems(cli("doctor", "--json")) if subject == "files of the state folder"]

    assert f"they are symbolic links: {state}/audit.key" == texts[0]
    assert ["they belong to another user", "you cannot read them"] == [each.partition(":")[0] for each in texts[1:]]
    assert texts[1].endswith(" more")


def test_systems_without_owners(cli, state, monkeypatch):
    """On a system without file owners the doctor compares none and finds no problem."""
    monkeypatch.delattr(os, "geteuid")

    assert [] == problems(cli("doctor", "--json"))


@pytest.mark.parametrize("kind", ["link", "file"])
def test_state_folder_that_is_none(cli, scratch, tmp_path, kind):
    """A state folder that is a link or a file is a problem, and the doctor examines nothing behind it."""
    (tmp_path / "target").mkdir()
    if kind == "link":
        (scratch / ".beaver").symlink_to(tmp_path / "target")
    else:
        (scratch / ".beaver").write_text("")
    ran = cli("doctor", "--json")

    what = "a symbolic link" if kind == "link" else "not a folder"
    assert [("state folder", f"{scratch}/.beaver is {what}")] == problems(ran)
    assert "sessions" not in findings(ran)


def test_temporary_files(cli, state):
    """A temporary file of a killed process is a warning once it is too old to be in use."""
    (state / ".host.db.0123.tmp").touch(0o600)
    assert 0 == cli("doctor", "--json").json["findings"].count("warning")
    os.utime(state / ".host.db.0123.tmp", (0, 0))
    ran = cli("doctor", "--json")

    text = f"a process that was killed left temporary files: {state}/.host.db.0123.tmp"
    assert (0, ("warning", text)) == (ran.code, findings(ran)["files of the state folder"])


def test_plugin_health(cli, state, configured):
    """The doctor shows the stored health of each plugin without loading it: since when it is degraded, and why."""
    configured(memory={"mode": "curated", "gateway": {}})
    bodies = {
        "curated": {"state": "degraded", "since": "2026-01-02T03:04:05+00:00", "faults": {"before_prompt": "timeout"}},
        "elsewhere": {"state": "degraded", "since": "2026-01-02T03:04:05+00:00"},
        "gone": {"state": "ok"},
        "gateway": {"state": "unavailable", "reason": "no credentials"},
        "tally": {"state": "disabled", "reason": "`plugins.disabled` names it"},
        "uninstalled": {"state": "unavailable", "reason": "no disk"},
        "odd": {"state": "canary"},
    }
    store_health(state, **bodies)
    ran = cli("doctor", "--json")
    found = {name: findings(ran)[f"plugin {name}"] for name in bodies}

    assert 1 == ran.code
    assert ("problem", "degraded since 2026-01-02 03:04:05 UTC: before_prompt: timeout") == found["curated"]
    assert ("ok", "not installed (last seen degraded since 2026-01-02 03:04:05 UTC)") == found["elsewhere"]
    assert ("ok", "not installed (last seen unavailable: no disk)") == found["uninstalled"]
    assert ("ok", "not installed") == found["gone"]
    why = "disabled: `plugins.disabled` names it (last seen unavailable: no credentials)"
    assert ("ok", why) == found["gateway"]
    assert ("warning", "its stored health cannot be read") == found["odd"]


DEGRADED = {
    "state": "degraded", "since": "2026-01-02T03:04:05+00:00", "faults": {"before_prompt": "timeout"},
    "consecutive_failures": 3,
}  # fmt: skip
SUSPENDED = {"failures": 3, "category": "timeout", "until": "2026-01-02T03:04:35+00:00", "seconds": 30}


@pytest.mark.parametrize(
    ("name", "disabled", "why"),
    [
        ("tally", ["tally"], "disabled: `plugins.disabled` names it"),
        ("gateway", [], "disabled: the memory mode `curated` blocks it"),
        ("uninstalled", [], "not installed"),
        ("uninstalled", ["uninstalled"], "disabled: `plugins.disabled` names it"),
    ],
)
def test_health_of_a_plugin_that_is_not_in_service(cli, state, configured, *, name, disabled, why):
    """A plugin that failed and then was uninstalled or disabled is no problem."""
    configured(plugins={"disabled": disabled})
    store_health(state, **{name: DEGRADED | {"suspension": SUSPENDED}})
    ran = cli("doctor", "--json")

    seen = "degraded since 2026-01-02 03:04:05 UTC: before_prompt: timeout (3 in a row)"
    assert (0, ("ok", f"{why} (last seen {seen})")) == (ran.code, findings(ran)[f"plugin {name}"])


@pytest.mark.parametrize(
    ("body", "hours", "level", "seen"),
    [
        ({"state": "ok"}, 23, "ok", "ok"),
        (DEGRADED, 23, "warning", "degraded since 2026-01-02 03:04:05 UTC: before_prompt: timeout (3 in a row)"),
        (DEGRADED, 25, "ok", None),
    ],
)
def test_health_of_a_plugin_that_a_program_registers(cli, state, configured, *, body, hours, level, seen):
    """A plugin without a distribution that was active in the last day is shown with its last health."""
    configured()
    at = datetime.now(UTC) - timedelta(hours=hours)
    naive = body | {"last_success": "2026-01-02T03:04:05"}
    store_health(state, object=body | {"last_success": at.isoformat()}, naive=naive)
    found = findings(cli("doctor", "--json"))

    if seen is None:
        assert (level, True) == (found["plugin object"][0], found["plugin object"][1].startswith("not installed (last"))
    else:
        text = f"not installed as a distribution (last seen {at:%Y-%m-%d %H:%M:%S} UTC: {seen})"
        assert (level, text) == found["plugin object"]
    assert "ok" == found["plugin naive"][0]


def test_health_of_a_suspended_plugin_that_a_program_registers(cli, state, configured):
    """The suspension of a plugin without a distribution counts as activity, and is a warning."""
    configured()
    now = datetime.now(UTC)
    moved = {"until": (now + timedelta(seconds=30)).isoformat(), "moved": now.isoformat()}
    store_health(state, object=DEGRADED | {"suspension": SUSPENDED | moved})
    level, text = findings(cli("doctor", "--json"))["plugin object"]

    assert ("warning", True) == (level, "before_prompt is suspended until" in text)


def test_health_of_a_plugin_that_missed_commits(cli, state):
    """A plugin that only missed commits is in order; the finding of its loss is another one."""
    store_health(state, tally=DEGRADED | {"faults": {"load": "commits_missing"}})

    text = "its last start missed commits; until you accept the loss, a problem names it"
    assert ("ok", text) == findings(cli("doctor", "--json"))["plugin tally"]


def test_health_of_a_plugin_while_the_configuration_is_wrong(cli, state, scratch):
    """While the configuration is wrong, the doctor shows a plugin by its stored health, as if it was enabled."""
    (state / "config.json").write_text("{")
    store_health(state, tally=DEGRADED)

    assert "problem" == findings(cli("doctor", "--json"))["plugin tally"][0]


@pytest.mark.parametrize(
    ("category", "fix"),
    [
        ("timeout", "see `beaver audit tail`, and fix the cause"),
        ("blocked", "the plugin must run its blocking code in a thread (`asyncio.to_thread`)"),
    ],
)
def test_suspended_plugins(cli, state, category, fix):
    """A suspended plugin is a problem that names the end of the suspension and the remedy."""
    store_health(state, tally=DEGRADED | {"suspension": SUSPENDED | {"category": category}})
    ran = cli("doctor", "--json")

    text = (
        "degraded since 2026-01-02 03:04:05 UTC: before_prompt: timeout (3 in a row);"
        " before_prompt is suspended until 2026-01-02 03:04:35 UTC and then tried again"
    )
    remedy = f"{fix}; the host tries the hook again by itself, and at once after an update of the plugin"
    (found,) = [each for each in ran.json["findings"] if each["subject"] == "plugin tally"]
    assert (1, {"subject": "plugin tally", "level": "problem", "text": text, "remedy": remedy}) == (ran.code, found)


@pytest.mark.parametrize(
    ("category", "meaning", "remedy"),
    [
        (
            "commits_missing",
            "its database lacks acknowledged commits",
            "`beaver doctor` names the database and the remedy",
        ),
        (
            "damaged_rows",
            "rows of its database fail their checksums",
            "`beaver memory check` names the rows and the remedy, and clears this when it finds none",
        ),
    ],
)
def test_a_plugin_that_reports_a_fault_of_its_database(category, meaning, remedy):
    """The finding about a plugin whose database is at fault names the command that names the remedy."""
    found = health.examine(
        "p", Health(state="degraded", faults={"reported": category}), wanted=True, degraded="warning"
    )
    assert warning("plugin p", f"degraded: reported: {category} ({meaning})", remedy) == found


def test_configuration_that_is_wrong(cli, state, scratch):
    """An unconfirmed configuration is a problem, and the stored data is examined all the same."""
    (state / "config.json").write_text("{}")
    ran = cli("doctor", "--json")

    assert (1, ["configuration"]) == (ran.code, [subject for subject, _ in problems(ran)])
    assert "ok" == findings(ran)["sessions"][0]


@pytest.mark.parametrize(
    ("mode", "subjects"),
    [
        (0o666, ["files of the state folder", "files of the configuration"]),
        (0o660, []),
        (0o611, []),
    ],
)
def test_confirmed_configuration(cli, state, mode, subjects):
    """A confirmed configuration is sound; one that any user can change is a problem, wherever it is."""
    (state / "config.json").write_text("{}")
    trust_config(state / "config.json")
    (state / "config.json").chmod(mode)
    ran = cli("doctor", "--json")

    text = f"other users can change them: {state}/config.json"
    assert [(subject, text) for subject in subjects] == problems(ran)
    assert "ok" == findings(ran)["configuration"][0]
    assert "ok" == findings(ran)["files of confirmations"][0]


def test_record_of_confirmations(cli, state, tmp_path):
    """A record of confirmations that others can change is a problem; so is one that cannot be read."""
    (state / "config.json").write_text("{}")
    trust_config(state / "config.json")
    record = tmp_path / "xdg_state_home" / "beaver-hooks" / "trusted.json"
    record.chmod(0o622)
    assert ("files of confirmations", f"other users can change them: {record}") in problems(cli("doctor", "--json"))
    record.write_text("canary")
    ran = cli("doctor", "--json")

    assert "problem" == findings(ran)["confirmations"][0]
    assert "canary" not in ran.out


def test_folder_of_a_plugin(cli, state, configured, tmp_path):
    """A configured folder of a plugin must be private like the state folder."""
    (tmp_path / "notes" / "users").mkdir(parents=True)
    (tmp_path / "notes").chmod(0o700)
    (tmp_path / "notes" / "users").chmod(0o750)
    configured(memory={"mode": "curated", "curated": {"folder": str(tmp_path / "notes")}})

    assert [("files of plugin curated", f"other users can read them: {tmp_path}/notes/users")] == problems(
        cli("doctor", "--json")
    )


def test_free_space(monkeypatch, tmp_path):
    """Little free space is a warning, hardly any a problem; the folder need not exist yet."""
    remedy = "make room on the disk of the state folder"
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: Usage(free=2**30) if folder == tmp_path else None)

    assert ok("free space", "1,024 MiB") == files.free_space(tmp_path / "not" / "yet")
    assert warning("free space", "511 MiB", remedy) == files.free_bytes(2**29 - 1)
    assert problem("free space", "31 MiB", remedy) == files.free_bytes(2**25 - 1)


def test_files_that_cannot_be_looked_at(cli, configured, tmp_path):
    """A file that vanishes during the examination is skipped; a path that cannot be examined is a problem."""
    long = tmp_path / ("x" * 300)
    configured(host={"stateFolder": str(long)})

    assert [] == list(files.entry(tmp_path / "gone", private=True))
    assert [("state folder", f"{long} cannot be examined (File name too long)")] == problems(cli("doctor", "--json"))
    remedy = "check the permissions of its folder"
    text = f"{long}/sessions.db cannot be examined (File name too long)"
    assert problem("sessions", text, remedy) == databases.sessions(long)


def test_text(cli, state):
    """The report shows the remedy below each problem, and the counts at the end."""
    (state / "audit.key").chmod(0o644)
    ran = cli("doctor")

    assert 1 == ran.code
    assert f"         -> run: chmod -R go= {state}\n" in ran.out
    assert ran.out.endswith("\n2 problems, 0 warnings.\n")


def test_json_is_one_object(cli, state):
    """With `--json` stdout holds one object, whose findings all have the same four keys."""
    ran = cli("doctor", "--json")

    assert {"ok", "findings"} == set(json.loads(ran.out))
    assert [{"subject", "level", "text", "remedy"}] == [*{frozenset(each) for each in ran.json["findings"]}]


@pytest.mark.parametrize(
    ("failure", "text"),
    [(PluginFailed("its commands cannot be imported", plugin="local"), "cannot be imported"), (OSError(), "(OSError)")],
)
def test_a_memory_that_cannot_be_examined(cli, state, monkeypatch, failure, text):
    """A plugin whose examination fails is a problem, and the others are examined."""

    def group(_):
        raise failure

    (state / "config.json").write_text('{"memory": {"mode": "curated", "local": {"enabled": true}}}')
    monkeypatch.setattr(memories, "plugin_group", group)
    trust_config(state / "config.json")
    ran = cli("doctor", "--json")

    assert "problem" == findings(ran)["memory local"][0]
    assert text in findings(ran)["memory local"][1]
    assert "sessions" in findings(ran)


def test_a_memory_is_examined_by_its_own_settings(cli, state, monkeypatch):
    """The examination of a memory gets its database, and what else is a secret there."""
    local = {"enabled": True, "databasePath": "/a.db", "redaction": {"emails": True, "phones": False}}
    (state / "config.json").write_text(json.dumps({"memory": {"mode": "curated", "local": local}}))
    group = click.Group()
    group.command("examine", context_settings={"ignore_unknown_options": True})(
        click.argument("words", nargs=-1)(lambda words: [("ok", " ".join(words[-3:]), "")])
    )
    monkeypatch.setattr(memories, "plugin_group", lambda _: group)
    trust_config(state / "config.json")

    assert ("ok", "--database /a.db --redact=emails") == findings(cli("doctor", "--json"))["memory local"]
