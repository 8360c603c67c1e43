"""`beaver hooks`: installation, removal and status, on real settings files."""

import json
import os
import select
import signal
import socket
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from beaver_hooks.coding_agents.claude_code import client
from beaver_hooks.coding_agents.claude_code.settings import EVENTS
from beaver_hooks.config import trust_config

FOREIGN = b'{"model": "opus",\n "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}, "env": {"A": "\xc3\xa9"}}'


@pytest.fixture(autouse=True)
def settings(tmp_path, monkeypatch):
    """The path of the user's settings file, which does not exist yet; other settings of this machine are hidden."""
    runtime = tmp_path / "run"
    runtime.mkdir(mode=0o700)
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    monkeypatch.delenv("CLAUDE_PROJECT_DIR", raising=False)
    return tmp_path / "claude" / "settings.json"


@pytest.fixture
def foreign(settings):
    """The settings file with entries of another program, in a form that no JSON writer reproduces."""
    settings.parent.mkdir()
    settings.write_bytes(FOREIGN)
    settings.chmod(0o640)
    return settings


@pytest.fixture
def installed(cli, foreign):
    """That file, with the hooks installed."""
    cli("hooks", "install", "claude-code")
    return foreign


@pytest.fixture
def runtime(monkeypatch):
    """A runtime folder with a name that is short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="bt-") as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        yield folder


def kept(tmp_path):
    """Return the suffixes of the files that the installations keep."""
    folder = tmp_path / "xdg_state_home" / "beaver-hooks" / "claude-code"
    return sorted(each.suffix for each in folder.iterdir() if each.name != "lock") if folder.is_dir() else []


def events(path):
    return {name: groups[-1]["hooks"][0]["command"] for name, groups in json.loads(path.read_bytes())["hooks"].items()}


def edit(path, change):
    found = json.loads(path.read_bytes())
    change(found)
    path.write_text(json.dumps(found))


# --- Installing and uninstalling --------------------------------------------------------------------------------


def test_install_and_uninstall(cli, foreign, tmp_path):
    """Installing adds our hooks and keeps other entries and the mode; uninstalling restores every byte."""
    installed = cli("hooks", "install", "claude-code")
    added, mode, beside = events(foreign), stat.S_IMODE(foreign.stat().st_mode), kept(tmp_path)
    taken = cli("hooks", "uninstall", "claude-code")

    told = f"The hooks are installed: {foreign}. Claude Code reads it when its next session starts."
    assert (0, told, "") == (installed.code, installed.out.splitlines()[0], installed.err)
    assert (0, f"The hooks are uninstalled: {foreign}. Claude Code reads it when its next session starts.\n") == (
        taken.code,
        taken.out,
    )
    assert set(EVENTS) == set(added)
    assert f"{sys.executable} -I -S {client.__file__} --seconds=6 --start" == added["UserPromptSubmit"]
    assert (0o640, [".before", ".json"]) == (mode, beside)
    assert (FOREIGN, 0o640, []) == (foreign.read_bytes(), stat.S_IMODE(foreign.stat().st_mode), kept(tmp_path))


def test_what_is_kept_is_private(cli, installed, tmp_path):
    """The backup of the settings is private, because settings may hold secrets."""
    folder = tmp_path / "xdg_state_home" / "beaver-hooks" / "claude-code"

    assert 0o700 == stat.S_IMODE(folder.stat().st_mode)
    assert {0o600} == {stat.S_IMODE(each.stat().st_mode) for each in folder.iterdir()}


def test_a_file_of_ours_alone(cli, settings):
    """Uninstalling removes a file that installing created, in any formatting, unless the user has added a setting."""
    there = []
    for change in (None, lambda _: None, lambda found: found.update(model="opus")):
        cli("hooks", "install", "claude-code")
        assert 0o600 == stat.S_IMODE(settings.stat().st_mode)
        if change:
            edit(settings, change)
        cli("hooks", "uninstall", "claude-code")
        there.append(settings.exists())

    assert ([False, False, True], {"model": "opus"}) == (there, json.loads(settings.read_bytes()))


def test_twice(cli, installed):
    """A second installation and a second removal change nothing."""
    once = installed.read_bytes()
    again = cli("hooks", "install", "claude-code")
    twice = installed.read_bytes()
    outs = [cli("hooks", "uninstall", "claude-code").out for _ in range(2)]

    assert (f"The hooks are installed already in {installed}.", once) == (again.out.splitlines()[0], twice)
    assert (FOREIGN, f"No hooks are installed in {installed}.\n") == (installed.read_bytes(), outs[1])


def test_never_installed(cli, settings):
    """Uninstalling without an installation creates no file."""
    assert (0, f"No hooks are installed in {settings}.\n") == cli("hooks", "uninstall", "claude-code")[:2]
    assert not settings.exists()


def test_other_options(cli, foreign, scratch):
    """Installing with other options replaces our hooks, and uninstalling still restores every byte."""
    (scratch / "c.json").write_text("{}")
    cli("hooks", "install", "claude-code")
    cli("hooks", "install", "claude-code", "--config", "c.json", "--trust", "inner")
    line = events(foreign)["Stop"]
    cli("hooks", "uninstall", "claude-code")

    assert line.endswith(f"--seconds=2 --config={scratch}/c.json --trust=inner")
    assert FOREIGN == foreign.read_bytes()


def test_whose_memory_and_how_much(cli, foreign):
    """The entries hold the user and the budget, and the status shows them; a negative budget is an error of usage."""
    cli("hooks", "install", "claude-code", "--user", "anna b", "--budget", "500")
    ran, refused = cli("hooks", "status"), cli("hooks", "install", "claude-code", "--budget", "-1")

    assert events(foreign)["Stop"].endswith("--seconds=2 '--user=anna b' --budget=500")
    assert "  options: '--user=anna b' --budget=500" in ran.out.splitlines()
    assert 2 == refused.code


def test_the_tools(cli, scratch):
    """Installing and the status show the `claude mcp add` command for the tools of the same memory."""
    (scratch / "c.json").write_text("{}")
    options = ["--config", "c.json", "--user", "anna b", "--budget", "500", "--trust", "inner", "--scope", "local"]
    installed, looked = cli("hooks", "install", "claude-code", *options), cli("hooks", "status")

    added = f"claude mcp add --scope local beaver -- {sys.executable} -P -m beaver_hooks.cli mcp"
    line = f"  {added} --config={scratch}/c.json '--user=anna b' --trust=inner"
    assert [True, True] == [line in each.out.splitlines() for each in (installed, looked)]
    assert line.strip() == cli("hooks", "status", "--json").json["memory"][0]["mcp"]


def test_the_option_of_the_root(cli, foreign, scratch):
    """`beaver --config` names the configuration too."""
    (scratch / "c.json").write_text("{}")
    cli("--config", "c.json", "hooks", "install", "claude-code")

    assert events(foreign)["Stop"].endswith(f"--config={scratch}/c.json")


def test_a_configuration_that_is_a_link(cli, foreign, scratch):
    """A configuration that is a link stays a link in the entries, so its relative paths start at the link."""
    (scratch / "real.json").write_text("{}")
    (scratch / ".beaver").mkdir()
    (scratch / ".beaver" / "config.json").symlink_to(scratch / "real.json")
    cli("hooks", "install", "claude-code", "--config", ".beaver/config.json")

    assert events(foreign)["Stop"].endswith(f"--config={scratch}/.beaver/config.json")


def test_a_configuration_that_is_missing(cli, foreign):
    """A configuration that does not exist is refused."""
    ran = cli("hooks", "install", "claude-code", "--config", "missing.json")

    assert 3 == ran.code
    assert ran.err.endswith("missing.json does not exist; create it first.\n")
    assert FOREIGN == foreign.read_bytes()


def test_edited_since(cli, installed):
    """Uninstalling from an edited file removes our hooks and keeps every edit."""
    edit(installed, lambda found: found["hooks"]["Stop"].append({"hooks": [{"type": "command", "command": "echo"}]}))
    edit(installed, lambda found: found.update(model="haiku"))
    cli("hooks", "uninstall", "claude-code")
    expected = json.loads(FOREIGN) | {"model": "haiku"}
    expected["hooks"]["Stop"].append({"hooks": [{"type": "command", "command": "echo"}]})

    assert expected == json.loads(installed.read_bytes())


def test_edited_and_installed_again(cli, installed):
    """After an edit, installing with other options makes the edited file the one to restore."""
    edit(installed, lambda found: found.update(model="haiku"))
    cli("hooks", "install", "claude-code", "--trust", "public")
    cli("hooks", "uninstall", "claude-code")

    assert json.loads(FOREIGN) | {"model": "haiku"} == json.loads(installed.read_bytes())


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("*.json", b""),
        ("*.json", b"{}"),
        ("*.json", b"[]"),
        ("*.json", b'{"version": 1, "before": "x", "after": 7}'),
        ("*.before", b"{}"),
    ],
)
def test_what_is_kept_is_damaged(cli, installed, tmp_path, name, damage):
    """Without a valid record, or with a backup that differs from it, uninstalling removes only our hooks."""
    (path,) = (tmp_path / "xdg_state_home" / "beaver-hooks" / "claude-code").glob(name)
    path.write_bytes(damage)
    cli("hooks", "uninstall", "claude-code")

    assert json.loads(FOREIGN) == json.loads(installed.read_bytes())


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"hooks": []}', b'// mine\n{"a": 1}'])
@pytest.mark.parametrize("verb", ["install", "uninstall"])
def test_a_file_that_is_refused(cli, settings, tmp_path, verb, content):
    """A file that Claude Code could not read is refused with the remedy, and no byte of it changes."""
    settings.parent.mkdir()
    settings.write_bytes(content)
    ran = cli("hooks", verb, "claude-code")

    assert (3, content, []) == (ran.code, settings.read_bytes(), kept(tmp_path))
    assert ran.err.startswith("Error: the settings file of Claude Code ")
    assert ran.err.endswith("; nothing was changed; correct the file, and run the command again.\n")


def test_what_cannot_be_read(cli, settings):
    """A settings file that cannot be read is an error that names its path."""
    settings.mkdir(parents=True)
    ran = cli("hooks", "install", "claude-code")

    assert (3, f"Error: {settings} cannot be used (it is not a regular file); check its permissions.\n") == (
        ran.code,
        ran.err,
    )


def test_a_link(cli, settings, tmp_path):
    """Installing into a link changes its target, and the link stays."""
    settings.parent.mkdir()
    real = tmp_path / "dotfiles.json"
    real.write_bytes(FOREIGN)
    settings.symlink_to(real)
    cli("hooks", "install", "claude-code")
    there = settings.is_symlink(), set(events(real)) == set(EVENTS)
    cli("hooks", "uninstall", "claude-code")

    assert ((True, True), True, FOREIGN) == (there, settings.is_symlink(), real.read_bytes())


@pytest.mark.parametrize(("scope", "name"), [("project", "settings.json"), ("local", "settings.local.json")])
def test_scopes(cli, settings, scratch, scope, name):
    """Each scope has its own file."""
    cli("hooks", "install", "claude-code", "--scope", scope)
    path = scratch / ".claude" / name

    assert (True, False) == (path.is_file(), settings.exists())
    assert 0 == cli("hooks", "uninstall", "claude-code", "--scope", scope).code
    assert not path.exists()


@pytest.mark.parametrize("link", [".claude", ".claude/settings.json", ".claude/settings.local.json"])
@pytest.mark.parametrize("there", [True, False], ids=["there", "dangling"])
@pytest.mark.parametrize("words", [("install",), ("install", "--dry-run"), ("uninstall",)], ids=" ".join)
def test_a_link_out_of_the_project(cli, scratch, tmp_path, words, link, *, there):
    """A link that leads out of the project, which a repository can bring, is refused; its target stays unchanged."""
    scope, target = "project" if link.endswith("s.json") else "local", tmp_path / "elsewhere"
    (scratch / link).parent.mkdir(exist_ok=True)
    (scratch / link).symlink_to(target, target_is_directory=link == ".claude")
    if there:
        target.mkdir() if link == ".claude" else target.write_bytes(FOREIGN)
    before = sorted(tmp_path.rglob("*"))
    ran = cli("hooks", words[0], "claude-code", "--scope", scope, *words[1:])
    looked = cli("hooks", "status", "--json")

    path = scratch / ".claude" / ("settings.json" if scope == "project" else "settings.local.json")
    problem = f"{path} is a link to a place outside the project; remove the link"
    (found,) = [each for each in looked.json["files"] if each["scope"] == scope]
    assert (3, "", f"Error: {problem}.\n", before) == (*ran, sorted(tmp_path.rglob("*")))
    assert (1, "unreadable", [problem]) == (looked.code, found["state"], found["problems"])
    assert (not there or link == ".claude") or FOREIGN == target.read_bytes()


def test_a_link_within_the_project(cli, scratch):
    """A link that stays in the project is followed and stays a link."""
    (scratch / ".claude").mkdir()
    (scratch / ".claude" / "settings.json").symlink_to(scratch / "shared.json")
    ran = cli("hooks", "install", "claude-code", "--scope", "project")

    assert (0, set(EVENTS)) == (ran.code, set(events(scratch / "shared.json")))
    assert (scratch / ".claude" / "settings.json").is_symlink()


def test_the_home_folder(cli, scratch, monkeypatch):
    """Without CLAUDE_CONFIG_DIR the user's settings are in the home folder."""
    monkeypatch.delenv("CLAUDE_CONFIG_DIR")
    cli("hooks", "install", "claude-code")

    assert (Path(os.environ["HOME"]) / ".claude" / "settings.json").is_file()


def test_dry_run(cli, foreign, tmp_path):
    """A dry run shows the difference, changes nothing and creates no folder."""
    ran = cli("hooks", "install", "claude-code", "--dry-run")

    assert (0, FOREIGN, False) == (ran.code, foreign.read_bytes(), (tmp_path / "xdg_state_home").exists())
    assert ran.out.startswith(f"--- {foreign} (now)\n+++ {foreign} (then)\n")
    assert ran.out.count("client.py") == len(EVENTS)


def test_dry_run_of_uninstalling(cli, installed):
    """A dry run of uninstalling shows the difference and changes nothing."""
    before = installed.read_bytes()
    ran = cli("hooks", "uninstall", "claude-code", "--dry-run")
    nothing = cli("hooks", "install", "claude-code", "--dry-run").out

    assert (0, before) == (ran.code, installed.read_bytes())
    assert f"+{FOREIGN.decode().splitlines()[0]}\n" in ran.out
    assert f"The hooks are installed already in {installed}.\n" == nothing


def test_json(cli, foreign):
    """`--json` reports the agent, the path and the change."""
    dry = cli("hooks", "install", "claude-code", "--dry-run", "--json").json
    done = cli("hooks", "install", "claude-code", "--json").json

    expected = {"agent": "claude-code", "path": str(foreign), "changed": True}
    assert [expected | {"dryRun": True}, expected | {"dryRun": False}] == [dry, done]


@pytest.mark.parametrize("lacks", ["sockets", "locks"])
def test_a_system_without_unix_sockets_or_file_locks(cli, foreign, monkeypatch, lacks):
    """Without Unix sockets or POSIX file locks nothing is installed, and the error names `beaver mcp`."""
    if lacks == "sockets":
        monkeypatch.delattr(socket, "AF_UNIX")
    else:
        monkeypatch.setitem(sys.modules, "fcntl", None)
    ran = cli("hooks", "install", "claude-code")

    expected = "Error: the hooks need Unix sockets and POSIX file locks, which Python lacks on this system; use `beaver mcp`.\n"
    assert (3, expected, FOREIGN) == (ran.code, ran.err, foreign.read_bytes())


def test_an_agent_that_is_unknown(cli):
    """An unknown coding agent is an error of usage."""
    assert 2 == cli("hooks", "install", "other").code


# --- Status -----------------------------------------------------------------------------------------------------


def test_other_programs(cli, runtime):
    """The status names other programs that run these hooks and get no memory; that is no problem."""
    cli("hooks", "install", "claude-code")
    before = cli("hooks", "status")
    path = Path(client.others_path(client.socket_path([], os.environ)))
    path.parent.mkdir(mode=0o700)
    path.write_text("Grok\nCopilot\n")
    ran, found = cli("hooks", "status"), cli("hooks", "status", "--json").json

    said = "Other programs run these hooks as well, but get no memory through them: Copilot, Grok."
    assert (0, 0, ["Copilot", "Grok"]) == (before.code, ran.code, found["memory"][0]["others"])
    assert (False, True) == ("Other programs" in before.out, " ".join(ran.out.split()).endswith(said))


def test_status_without_any(cli, settings, scratch):
    """Without hooks the status shows only the three files that could hold them."""
    ran = cli("hooks", "status")

    lines = [
        f"user     absent     {settings}",
        *(
            f"{scope:8} absent     {scratch}/.claude/{name}"
            for scope, name in [("project", "settings.json"), ("local", "settings.local.json")]
        ),
    ]
    assert (0, lines) == (ran.code, ran.out.splitlines())


def test_status_installed(cli, installed):
    """With hooks the status shows their file and the state of the resident process of this folder."""
    ran = cli("hooks", "status", "claude-code")

    assert 0 == ran.code
    assert f"user     installed  {installed}" == ran.out.splitlines()[0]
    assert "No resident process runs for this folder; the next session starts one." == ran.out.splitlines()[-1]


def test_status_as_json(cli, installed):
    """`--json` reports the agent, the files and the memory."""
    found = cli("hooks", "status", "--json").json

    expected = {
        "scope": "user",
        "path": str(installed),
        "state": "installed",
        "problems": [],
        "notes": [],
        "options": [],
    }
    assert ("claude-code", expected) == (found["agent"], found["files"][0])
    assert (None, None) == (found["memory"][0]["problem"], found["memory"][0]["resident"])


def problems(cli):
    ran = cli("hooks", "status", "--json")
    user = ran.json["files"][0]
    return ran.code, user["state"], user["problems"]


AGAIN = "`beaver hooks install claude-code` fixes it"


def test_status_half_installed(cli, installed):
    """The status names missing, doubled and unused hooks; installing again fixes them."""

    def damage(found):
        del found["hooks"]["SessionEnd"]
        found["hooks"]["PreToolUse"] = found["hooks"]["PostToolUse"]
        found["hooks"]["PostToolUse"] = found["hooks"]["PostToolUse"] * 2

    edit(installed, damage)
    before = problems(cli)
    note = cli("hooks", "status", "--json").json["files"][0]["notes"]
    cli("hooks", "install", "claude-code")

    expected = [
        f"the event SessionEnd has no hook; {AGAIN}",
        f"the event PostToolUse has more than one hook; {AGAIN}",
        f"the event PreToolUse has a hook that this version does not use; {AGAIN}",
    ]
    assert (1, "partly", expected) == before
    assert ["the file was changed after the installation; uninstalling removes the hooks and leaves the rest"] == note
    assert (0, "installed", []) == problems(cli)


def test_status_of_what_moved(cli, installed):
    """The status names an interpreter that does not exist any more."""
    installed.write_bytes(installed.read_bytes().replace(sys.executable.encode(), b"/gone/python"))
    ran = cli("hooks", "status")

    assert (1, "installed", [f"/gone/python does not exist any more; {AGAIN}"]) == problems(cli)
    assert "  problem: /gone/python does not exist any more; `beaver hooks install" in ran.out
    assert "another installation of Beaver Hooks than this one" in ran.out


@pytest.mark.parametrize("scope", ["user", "local"])
def test_status_switched_off(cli, foreign, scratch, scope):
    """`disableAllHooks` in any settings file is a problem."""
    before = cli("hooks", "status").code
    cli("hooks", "install", "claude-code")
    path = foreign if scope == "user" else scratch / ".claude" / "settings.local.json"
    path.parent.mkdir(exist_ok=True)
    path.touch()
    path.write_text(json.dumps({**json.loads(path.read_bytes() or b"{}"), "disableAllHooks": True}))
    ran, found = cli("hooks", "status"), cli("hooks", "status", "--json")

    problem = "`disableAllHooks` is true in a settings file, so Claude Code runs no hook; remove that setting."
    assert (0, 1, True) == (before, ran.code, problem in ran.out)
    assert problem == found.json["problem"]


def test_status_of_garbled_options(cli, installed):
    """Options of a hook that the user has garbled do not make the status fail."""
    installed.write_bytes(installed.read_bytes().replace(b"--seconds=6", b"--seconds=abc"))
    ran = cli("hooks", "status", "--json")

    assert (0, "installed", []) == (ran.code, ran.json["files"][0]["state"], ran.json["files"][0]["options"])


def test_a_pipe_in_place_of_the_settings(cli, scratch):
    """A pipe in place of the settings file is reported as unreadable, and no command waits for its writer."""
    path = scratch / ".claude" / "settings.json"
    path.parent.mkdir()
    os.mkfifo(path)
    ran, tried = cli("hooks", "status", "--json"), cli("hooks", "install", "claude-code", "--scope", "project")

    assert (1, "unreadable") == (ran.code, ran.json["files"][1]["state"])
    assert (3, True) == (tried.code, path.is_fifo())


def test_status_of_a_place_that_is_not_private(cli, installed, runtime):
    """A socket folder that other users can use is a problem, so no resident process is asked."""
    folder = Path(client.socket_path([], os.environ)).parent
    folder.mkdir(mode=0o755)
    ran = cli("hooks", "status", "--json")

    assert (1, True) == (ran.code, f"{folder} can be used by other users too" in ran.json["memory"][0]["problem"])


def test_a_folder_that_nobody_confirmed(cli, foreign, scratch, monkeypatch, tmp_path):
    """Memory in a folder that the user has not confirmed is off, and the status names the command that confirms it."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    cli("hooks", "install", "claude-code")
    none = cli("hooks", "trust", "claude-code")
    (scratch / ".beaver" / "plugins").mkdir(parents=True)
    before = cli("hooks", "status")
    confirmed = cli("hooks", "trust", "claude-code")

    assert (3, f"Error: there is no folder {tmp_path}/home/.beaver; run this in the folder of the project.\n") == (
        none.code,
        none.err,
    )
    assert (1, True) == (before.code, "`beaver hooks trust claude-code`" in " ".join(before.out.split()))
    assert (0, f"The memory in {scratch}/.beaver is confirmed.\n") == (confirmed.code, confirmed.out)
    assert 0 == cli("hooks", "status").code


@pytest.mark.parametrize(("name", "code"), [("{folder}/other/.beaver/c.json", 0), ("other/.beaver/c.json", 1)])
def test_a_folder_that_a_variable_leads_to(cli, scratch, monkeypatch, name, code):
    """An absolute path in BEAVER_CONFIG confirms its memory; a relative one, which leads into any project, does not."""
    cli("hooks", "install", "claude-code")
    (scratch / "other" / ".beaver" / "plugins").mkdir(parents=True)
    (scratch / "other" / ".beaver" / "c.json").write_text("{}")
    monkeypatch.setenv("BEAVER_CONFIG", name.format(folder=scratch))

    assert code == cli("hooks", "status").code


def test_status_of_what_cannot_be_read(cli, settings):
    """A settings file that cannot be read is a problem, and the other files are examined all the same."""
    settings.parent.mkdir()
    settings.write_text("{")
    ran = cli("hooks", "status", "--json")

    assert (1, ["unreadable", "absent", "absent"]) == (ran.code, [each["state"] for each in ran.json["files"]])


def test_status_installed_twice(cli, installed, scratch):
    """Hooks in two files are a problem if their options differ, because two memories process each prompt."""
    cli("hooks", "install", "claude-code", "--scope", "local")
    same = cli("hooks", "status")
    cli("hooks", "install", "claude-code", "--scope", "local", "--trust", "public")
    other = cli("hooks", "status")

    problem = "The hooks are installed twice with different options, so each prompt is processed twice; uninstall one of them."
    assert (0, False) == (same.code, problem in same.out)
    assert (1, True) == (other.code, problem in other.out)
    assert problem == cli("hooks", "status", "--json").json["problem"]


def test_status_of_a_resident(cli, installed, runtime):
    """The status shows the process, the open turns, the log and the plugins of a resident."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    start = [sys.executable, "-I", "-S", client.__file__, "--seconds=30", "--start"]
    common = {"session_id": "s", "transcript_path": "/t.jsonl", "cwd": "/p"}
    event = json.dumps({**common, "hook_event_name": "SessionStart", "source": "startup"}).encode()
    subprocess.run(start, input=event, env=environment, check=True, capture_output=True, timeout=60)
    ran, found = cli("hooks", "status"), cli("hooks", "status", "--json").json["memory"][0]["resident"]
    descriptor = os.pidfd_open(found["pid"])
    os.kill(found["pid"], signal.SIGTERM)
    ended, _, _ = select.select([descriptor], [], [], 60)
    os.close(descriptor)
    log = Path(client.socket_path([], environment)).with_suffix(".log")

    expected = [
        f"The resident process {found['pid']} has 0 open turns; memory is on. Its log is {log}.",
        "  curated recalls before a prompt; does not learn; has the tool memory",
    ]
    assert (0, expected) == (ran.code, [each for each in ran.out.splitlines() if each in expected])
    assert ended


@pytest.mark.parametrize(
    ("held", "said"),
    [
        (b"7\n", "the resident process 7 does not answer; end it by `kill -9 7`, and the next session starts another"),
        (b"", "the resident process does not answer; end it, and the next session starts another"),
    ],
)
def test_status_of_a_resident_that_hangs(cli, monkeypatch, runtime, held, said):
    """A resident that does not answer is a problem, not an absent one."""
    monkeypatch.setattr("beaver_hooks.coding_agents.claude_code.status.PATIENCE", 0.1)
    cli("hooks", "install", "claude-code")
    with socket.socket(socket.AF_UNIX) as listening:
        path = Path(client.socket_path([], os.environ))
        path.parent.mkdir(mode=0o700)
        path.with_suffix(".lock").write_bytes(held)
        listening.bind(str(path))
        listening.listen()
        ran, found = cli("hooks", "status"), cli("hooks", "status", "--json").json["memory"][0]

    assert (1, said, None) == (ran.code, found["problem"], found["resident"])
    assert f"Memory is off in this folder: {said}." in " ".join(ran.out.split())


def test_status_of_a_configuration_that_nobody_confirmed(cli, installed, scratch):
    """Memory is off with an unconfirmed configuration, and the status gives that reason, until the user confirms it."""
    path = scratch / ".beaver" / "config.json"
    path.parent.mkdir()
    path.write_text("{}")
    before = cli("hooks", "status")
    trust_config(path)

    assert 1 == before.code
    assert "Memory is off in this folder: the configuration" in before.out
    assert "is not confirmed" in " ".join(before.out.split())
    assert 0 == cli("hooks", "status").code
