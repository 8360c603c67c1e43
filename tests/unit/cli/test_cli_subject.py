"""`beaver memory export --subject` and `erase --subject`: the data of one person, in every plugin and the host."""

import contextlib
import json
import shutil
import stat
import zipfile
from pathlib import Path

import apsw
import pytest
from integration.faults_kit import SUBJECT_CASES, faulty
from processes import environment, run_beaver

from beaver_hooks.audit.reader import TrailReader
from beaver_hooks_curated import CuratedSettings, MemoryService, Operation, Target
from beaver_memory.engine import MemoryEngine
from beaver_memory.records import NewMemory, Owner

MEMORY = {
    "curated": {"perUser": True},
    "gateway": {"baseUrl": "http://127.0.0.1:9", "userId": "u", "userKey": "k", "appId": "a", "projectId": "p"},
    "local": {"enabled": True, "embedding": {"provider": "none"}},
}
GONE = ("Annquay", "Annpier", "Annprofile")
REMEDY = "Run `beaver doctor`, which names damaged data with its remedy, and repeat the command.\n"
KEPT = ("Bobquay", "Nobodyquay", "Acmequay")


def write_config(project: Path, mode="curated", disabled=("tally",)) -> None:
    (project / ".beaver").mkdir(parents=True, exist_ok=True)
    raw = {"memory": MEMORY | {"mode": mode}, "plugins": {"disabled": disabled}}
    (project / ".beaver" / "config.json").write_text(json.dumps(raw))


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A home with a project in which two users, a user of a tenant and a caller without a user have left data."""
    owner_home = tmp_path_factory.mktemp("filled")
    project = owner_home / "project"
    write_config(project)
    env = environment(HOME=owner_home, BEAVER_CONFIG=project / ".beaver" / "config.json")
    for user, place in (("ann", "Annpier"), ("bob", "Bobquay")):
        ran = run_beaver("run", f"I was at {place}", "--user", user, "--session", user, cwd=project, env=env)
        assert 0 == ran.code, ran
    owners = {"Annquay": Owner(user="ann"), "Bobquay": Owner(user="bob"), "Nobodyquay": Owner()}
    owners["Acmequay"] = Owner(tenant="acme", user="ann")
    with MemoryEngine.open(project / ".beaver/plugins/local") as engine:
        engine.add([NewMemory(title=title, owner=owner, scope="project") for title, owner in owners.items()])
    folders = [owner_home / ".beaver/plugins/curated", project / ".beaver/plugins/curated"]
    service = MemoryService(folders[1], CuratedSettings(per_user=True), person=folders[0])
    for user, text in (("ann", "Annprofile"), ("bob", "Bobquay")):
        service.change(Target.USER, [Operation(action="add", content=text)], user=user)
    return owner_home


@pytest.fixture
def owner_home(filled, tmp_path, monkeypatch):
    """A copy of that home, in whose project the commands run."""
    folder = shutil.copytree(filled, tmp_path / "home")
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("BEAVER_CONFIG", str(folder / "project/.beaver/config.json"))
    monkeypatch.chdir(folder / "project")
    return folder


def words_in(folder: Path, words: tuple[str, ...]) -> set[str]:
    """Return those words that a file below a folder holds, in any case."""
    whole = b"\0".join(each.read_bytes().lower() for each in folder.rglob("*") if each.is_file())
    return {word for word in words if word.lower().encode() in whole}


def unpacked(path: Path) -> dict[str, str]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name).decode() for name in archive.namelist()}


def last_event(home: Path):
    (event,) = TrailReader(home / "project/.beaver").tail(1)
    return event.name, {name: event.facts[name] for name in ("count", "left", "holders", "failed")}


ERASED_SINCE = (
    "The data of 1 person was erased after this backup was made. If it is back, erase it again:"
    " `beaver memory erase --subject USER`.\n"
)
PLACES = {
    "curated": {"entries": 1, "changes": 1, "files": 2},
    "host": {"conversations": 1, "messages": 2},
}


def test_a_person_is_exported_and_erased(cli, owner_home):
    """The zip file holds what each holder keeps of one user; an erasure leaves no word of it, and the others' data."""
    out = owner_home / "ann.zip"
    seen = words_in(owner_home / ".beaver", GONE) | words_in(owner_home / "project", GONE)
    exported = cli("memory", "export", "--subject", "ann", "-o", out, "--json")
    files = unpacked(out)
    exported_event = last_event(owner_home)
    out.unlink()
    erased = cli("memory", "erase", "--subject", "ann", "--yes", "--json")
    again = cli("memory", "erase", "--subject", "ann", "--dry-run", "--json")

    assert {*GONE} == seen
    assert (0, 0, 0) == (exported.code, erased.code, again.code)
    assert exported.json | {"file": "", "unrecorded": ""} == json.loads(files.pop("report.json")) | {
        "file": "", "unrecorded": ""
    }  # fmt: skip
    everything = "".join(files.values())
    assert ({*GONE}, set()) == (
        {each for each in GONE if each in everything},
        {each for each in KEPT if each in everything},
    )
    assert {"curated", "host", "local"} == {name.split("/")[0] for name in files}
    for name, held in PLACES.items():
        assert held == {place: exported.json["places"][name][place] for place in held}
        assert held == {place: erased.json["places"][name][place] for place in held}
    assert (1, 1) == (exported.json["places"]["local"]["memories"], erased.json["places"]["local"]["memories"])
    assert ({}, {}, "") == (erased.json["left"], erased.json["failed"], erased.json["unrecorded"])
    assert {"curated": {}, "local": {}, "host": {}} == again.json["places"]
    assert set() == words_in(owner_home, GONE)
    assert {*KEPT} == words_in(owner_home, KEPT)
    count = sum(sum(each.values()) for each in erased.json["places"].values())
    facts = {"left": 0, "holders": ["curated", "local", "host"], "failed": []}
    assert ("subject_erased", facts | {"count": count}) == last_event(owner_home)
    assert "subject_exported" == exported_event[0]


def test_damaged_memories_are_named(cli, owner_home):
    """An export counts damaged memories, names the remedy and exits with 1; an erasure erases them."""
    with contextlib.closing(apsw.Connection(str(owner_home / "project/.beaver/plugins/local/memory.db"))) as database:
        database.execute("UPDATE observations SET summary = 'other' WHERE title = 'Annquay'")
    exported = cli("memory", "export", "--subject", "ann", "-o", "ann.zip")
    erased = cli("memory", "erase", "--subject", "ann", "--yes")

    assert (1, 0) == (exported.code, erased.code)
    assert f"Not exported: local: damaged memories 1.\n{REMEDY}" == exported.err
    assert "`beaver memory export --damaged --user USER`" in exported.out
    assert ("", set()) == (erased.err, words_in(owner_home / "project/.beaver", GONE))


def test_a_tenant_is_another_person(cli, owner_home):
    """With a tenant, the memories of that tenant alone are meant; places that keep no tenants say so."""
    erased = cli("memory", "erase", "--subject", "ann", "--tenant", "acme", "--yes", "--json")

    assert ({}, {}) == (erased.json["places"]["curated"], erased.json["places"]["host"])
    assert 1 == erased.json["places"]["local"]["memories"]
    assert 2 == sum("leave out --tenant" in each for each in erased.json["unreached"])
    assert {*GONE, *KEPT} - {"Acmequay"} == words_in(owner_home, (*GONE, *KEPT))


def test_a_user_of_whom_nothing_is_stored_is_said(cli, owner_home):
    """For an unknown id, or one in another case, each command says that nothing was found; the file is a report alone."""
    exported = cli("memory", "export", "--subject", "Ann", "-o", "ann.zip")
    erased = cli("memory", "erase", "--subject", "ann", "--tenant", "other", "--yes")
    dry = cli("memory", "erase", "--subject", "Ann", "--dry-run")
    asked = cli("memory", "erase", "--subject", "Ann", stdin="n\n", terminal=True)

    hint = "Ids are compared exactly: check the spelling, upper and lower case, and the tenant.\n"
    nothing = f"Nothing was found for the user Ann. {hint}"
    alone = "The report alone was written to ann.zip, which only you can read.\n"
    assert (0, True) == (exported.code, exported.out.startswith(nothing + alone + "  curated: nothing\n"))
    assert [*unpacked(Path("ann.zip"))] == ["report.json"]
    assert (0, f"Nothing was found for the user ann of the tenant other. {hint}Erased:") == (
        erased.code, erased.out.partition("\n  ")[0]
    )  # fmt: skip
    assert (0, f"{nothing}Would erase:") == (dry.code, dry.out.partition("\n  ")[0])
    assert (1, True) == (asked.code, nothing in asked.err)
    assert {*GONE, *KEPT} == words_in(owner_home, (*GONE, *KEPT))


def test_a_dry_run_changes_nothing(cli, owner_home):
    """A dry run counts, names what it would not reach, and changes no stored word; the archive is private."""
    dry = cli("memory", "erase", "--subject", "ann", "--dry-run")
    exported = cli("memory", "export", "--subject=ann", "-o", "ann.zip")

    assert (0, 0) == (dry.code, exported.code)
    assert dry.out.startswith("Would erase:\n  curated: entries 1, changes 1, files 2\n  local: memories 1,")
    assert dry.out.endswith("\nNothing was erased; this was a dry run.\n")
    assert "  host: conversations 1, messages 2, hidden events " in dry.out
    assert "host: Earlier backups, exports and logs are not reached" in dry.out
    assert 0o600 == stat.S_IMODE(Path("ann.zip").stat().st_mode)
    assert exported.out.startswith("Exported to ann.zip, which only you can read.\n  curated: entries 1,")
    assert {*GONE, *KEPT} == words_in(owner_home, (*GONE, *KEPT))
    assert [] == [each.name for each in Path.cwd().iterdir() if each.name.endswith(".tmp")]


@pytest.mark.parametrize(
    ("words", "typed", "refusal"),
    [
        (("erase", "--subject", "ann"), None, (2, "there is no terminal to ask for confirmation; add --yes")),
        (("erase", "--subject", "ann"), "n\n", (1, "Nothing was changed.")),
        (("erase", "--subject", " "), None, (2, "An id must not be blank")),
        (("erase",), None, (2, "Missing option '--subject'")),
        (("export", "--subject", "ann"), None, (2, "Missing option '-o'")),
        (("export", "--subject", "ann", "-o", ".beaver/config.json"), None, (2, "exists; name another one")),
        (("export", "--subject", "ann", "-o", "none/ann.zip"), None, (5, "cannot be written (No such file")),
    ],
)
def test_nothing_happens_unless_it_is_meant(cli, owner_home, words, typed, refusal):
    """Without a confirmation, an id or a free file nothing is erased or written, and the error says what to do."""
    ran = cli("memory", *words, stdin=typed or "", terminal=typed is not None)

    assert (refusal[0], True) == (ran.code, refusal[1] in ran.err), ran
    assert {*GONE} == words_in(owner_home, GONE)


def test_a_confirmed_erasure_is_done(cli, owner_home):
    """At a terminal the counts are shown, and the person at it confirms."""
    ran = cli("memory", "erase", "--subject", "ann", stdin="y\n", terminal=True)

    assert (0, set()) == (ran.code, words_in(owner_home, GONE))
    assert "curated: entries 1, changes 1, files 2" in ran.err


def test_without_a_person_the_export_is_that_of_the_local_memory(cli, owner_home):
    """`beaver memory export` without a person is the command of the plugin, as before."""
    ran = cli("memory", "export", "--user", "bob")

    assert (0, ["Bobquay", "Nobodyquay"]) == (ran.code, [json.loads(each)["title"] for each in ran.out.splitlines()])


def test_the_gateway_is_named(cli, owner_home):
    """The data on the remote side is named as not reached, and no request is made."""
    write_config(owner_home / "project", mode="hybrid")
    ran = cli("memory", "erase", "--subject", "ann", "--dry-run", "--json")

    assert (0, {}) == (ran.code, ran.json["places"]["gateway"])
    assert 1 == sum(each.startswith("gateway: The Memory Gateway keeps the turns") for each in ran.json["unreached"])


@pytest.mark.parametrize(("fault", "hook"), SUBJECT_CASES, ids=str)
def test_a_plugin_that_fails_is_named(cli, owner_home, install, fault, hook):
    """A plugin with files that cannot offer its data is named, and the exit code is 1; the others erase theirs."""
    install("faulty", faulty(owner_home / "project/.beaver/plugins/faulty", fault, hook))
    ran = cli("memory", "erase", "--subject", "ann", "--yes", "--json")

    assert (1, ["faulty"]) == (ran.code, [*ran.json["failed"]])
    assert set() == words_in(owner_home, GONE)
    assert ("subject_erased", ["faulty"]) == (last_event(owner_home)[0], last_event(owner_home)[1]["failed"])


KEEPER = """
from beaver_hostspecs import PluginError, SubjectData, SubjectReport, hookimpl

def answer(*_):
    {answer}

class Plugin:
    @hookimpl
    def subject_data(self):
        return SubjectData(count=answer, export=answer, erase=answer)
"""


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ("1 / 0", ({"keeper": "It raised ZeroDivisionError; report this."}, {})),
        ("return None", ({"keeper": "It returned a NoneType; report this."}, {})),
        ("open('/')", ({"keeper": "A file cannot be read or written (Is a directory)."}, {})),
        ("raise PluginError('Plug it in.', plugin='keeper')", ({"keeper": "Plug it in."}, {})),
        ("return SubjectReport(left={'notes': 2})", ({}, {"keeper": {"notes": 2}})),
    ],
)
def test_a_plugin_that_leaves_data_fails_the_command(cli, owner_home, install, answer, told):
    """A plugin that raises, answers the wrong type or leaves data is named, exits with 1, and stops no other one."""
    failed, left = told
    install("keeper", KEEPER.format(answer=answer))
    exported = cli("memory", "export", "--subject", "ann", "-o", "ann.zip", "--json")
    shown = cli("memory", "erase", "--subject", "ann", "--dry-run")
    erased = cli("memory", "erase", "--subject", "ann", "--yes", "--json")

    assert (1, 1, 1) == (exported.code, shown.code, erased.code)
    assert [(failed, left)] * 2 == [(each.json["failed"], each.json["left"]) for each in (exported, erased)]
    expected = [f"Not done: keeper: {why}\n" for why in failed.values()] or [f"Still there: keeper: notes 2.\n{REMEDY}"]
    assert expected == [shown.err]
    Path("ann.zip").unlink()
    assert set() == words_in(owner_home, GONE)


MUTE = """
from beaver_hostspecs import hookimpl

class Plugin:
    @hookimpl
    async def start(self):
        pass
"""
WITHOUT = "has no hook `subject_data`; ask its author how to reach its data."


def test_plugins_that_cannot_be_asked_are_named(cli, owner_home, install):
    """Plugins without the hook, and the files of those that are off or not installed, are named; the exit code is 1."""
    write_config(owner_home / "project", disabled=["tally", "local"])
    install("filed", MUTE)
    install("mute", MUTE)
    plugins = owner_home / "project/.beaver/plugins"
    for name in ("absent", "filed"):
        (plugins / name).mkdir()
        (plugins / name / "notes").write_text("kept")
    ran = cli("memory", "erase", "--subject", "ann", "--yes", "--json")
    shown = cli("memory", "erase", "--subject", "ann", "--dry-run")

    named = [
        f"The files in {plugins}/absent were not reached: the plugin absent is not installed.",
        f"The files in {plugins}/filed were not reached: the plugin filed {WITHOUT}",
        f"The files in {plugins}/local were not reached: the plugin local is off (`plugins.disabled` names it).",
        f"Data of the plugin mute, wherever it keeps any, was not reached: it {WITHOUT}",
    ]
    assert (1, {"mute", "absent", "filed", "local"}, ["curated", "host"]) == (
        ran.code, {*ran.json["unasked"]}, [*ran.json["places"]]
    )  # fmt: skip
    assert named == [each for each in ran.json["unreached"] if "not reached: " in each]
    off = "The plugin tally is off and has no files here; data that it keeps elsewhere was not reached."
    assert (True, 1, 4) == (off in ran.json["unreached"], shown.code, shown.err.count("Not asked: "))
    assert {"Annquay"} == words_in(owner_home, GONE)


def test_a_plugin_that_keeps_nothing_is_no_gap(cli, owner_home, install):
    """A plugin whose hook answers `None` keeps nothing about persons, so the command succeeds."""
    install(
        "blank", KEEPER.format(answer="pass").replace("SubjectData(count=answer, export=answer, erase=answer)", "None")
    )
    ran = cli("memory", "erase", "--subject", "ann", "--dry-run", "--json")

    assert (0, []) == (ran.code, ran.json["unasked"])


def test_a_restore_names_an_erasure_since_the_backup(cli, owner_home):
    """A backup brings an erased USER.md back: the restore says that a person was erased since, and how to repeat it."""
    backup = owner_home / "b.zip"
    cli("memory", "erase", "--subject", "ann", "--tenant", "acme", "--yes")
    cli("backup", backup)
    before = cli("restore", backup, "--merge", "--dry-run")
    cli("memory", "erase", "--subject", "ann", "--yes")
    cli("memory", "erase", "--subject", "nobody", "--yes")
    restored = cli("restore", backup, "--merge")
    back = words_in(owner_home / "project", GONE) | words_in(owner_home / ".beaver", GONE)
    cli("memory", "erase", "--subject", "ann", "--yes")
    again = cli("restore", backup, "--merge", "--dry-run", "--json")

    assert ("", 1) == (before.err, again.json["erased_since"])
    assert (0, ERASED_SINCE) == (restored.code, restored.err)
    assert {"Annpier", "Annprofile"} == back


def test_a_restore_without_a_readable_trail_says_so(cli, owner_home):
    """If the audit trail cannot be read, the restore says that erasures since the backup are not known."""
    backup = owner_home / "b.zip"
    cli("backup", backup)
    (owner_home / "project/.beaver/host.db").write_bytes(b"no database" * 100)
    ran = cli("restore", backup, "--merge", "--dry-run")

    assert (0, "Whether data of persons was erased after this backup was made is not known: The audit trail") == (
        ran.code,
        ran.err[:91],
    )


def test_an_erasure_without_an_audit_record_says_so(cli, owner_home):
    """If the audit trail cannot be written, the data is erased all the same, and the command says so and exits with 1."""
    trail = owner_home / "project/.beaver/host.db"
    trail.write_bytes(b"no database" * 100)
    ran = cli("memory", "erase", "--subject", "ann", "--yes")

    assert (1, set()) == (ran.code, words_in(owner_home, GONE))
    assert "The audit trail has no record of this: " in ran.err


def test_conversations_that_cannot_be_read_fail_the_command(cli, owner_home):
    """If the conversations cannot be read, the others erase theirs, and the host is named."""
    (owner_home / "project/.beaver/sessions.db").write_bytes(b"no database" * 100)
    ran = cli("memory", "erase", "--subject", "ann", "--yes", "--json")

    assert (1, ["host"]) == (ran.code, [*ran.json["failed"]])
    assert ran.json["failed"]["host"].startswith("The session store ")


def test_where_nothing_is_stored_nothing_is_made(cli, scratch):
    """In an empty home an erasure finds no data, makes no file, and names the plugin that it could not ask."""
    ran = cli("memory", "erase", "--subject", "ann", "--yes", "--json")

    assert (1, ["tally"]) == (ran.code, ran.json["unasked"])
    assert {} == {name: held for name, held in ran.json["places"].items() if held}
    assert [] == [*scratch.iterdir()]
