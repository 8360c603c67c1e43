"""Makes a folder of state with the version of Beaver Hooks that runs this script, for later versions to open.

    git archive COMMIT | tar -x -C OLD && make -C OLD install
    OLD/.venv/bin/python tests/state/make.py tests/state/DATE-COMMIT

It writes `state.tar.gz`, a home directory with a project in it, and `expected.json`, what that version's own commands
show of it. `test_stored_state.py` makes such a folder with this version, and opens it and every folder that is here.
From the first release on, add one before a change of the stored format, and never make an old one anew. It needs git,
nothing else but that version, and talks to itself only.
"""

import hashlib
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tarfile
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

ROOT = "@ROOT@"
"""Stands in the records of confirmations for the folder in which the home directory lies."""

PROJECT = "home/project"
CURATED = f"{PROJECT}/.beaver/plugins/curated"
SHARED = "home/.beaver/plugins/curated"
SKILL = ".beaver/skills/greet/SKILL.md"
RECORDS = "home/.local/state/beaver-hooks"
MEMORY_OFF = "ben"
"""The user for whom memory is switched off."""

MEMORIES: tuple[dict[str, Any], ...] = (
    {
        "title": "The office closes at six.",
        "narrative": "On Fridays at four, says the porter.",
        "facts": ["Six o'clock.", "Four on Fridays."],
        "summary": "Closing times.",
        "owner": {"user": "anna"},
        "store": "shared",
        "type": "decision",
        "scope": "project",
        "project": "web",
        "session": "session-of-old",
        "agent": "agent-a",
        "speaker": "Ann",
        "tags": ["office", "time"],
        "keywords": ["closing"],
        "related_files": ["src/office.py"],
        "related_people": ["Ann", "Ben"],
        "confidence": 0.75,
        "importance": 0.9,
        "pinned": True,
        "created_at": "2026-01-02T03:04:05+00:00",
        "expires_at": "2199-01-01T00:00:00+00:00",
        "valid_from": "2026-01-01T00:00:00+00:00",
    },
    {"title": "The office closed at five.", "valid_until": "2026-01-01T00:00:00+00:00", "type": "decision"},
    {"title": "Prefers tea to coffee.", "type": "preference", "scope": "global"},
    {"title": "A word nobody may keep: quillaja.", "type": "fact"},
    {"title": "Naïve café, 日本語, emoji 🦫.", "store": "social", "type": "fact", "owner": {"user": "ben"}},
)

Call = tuple[str, dict[str, Any]]


class Model(BaseHTTPRequestHandler):
    """Answers each request with the next of `script`: a text, or a call of a tool."""

    script: Iterator[str | Call]

    def do_POST(self) -> None:
        """Answer."""
        self.rfile.read(int(self.headers["Content-Length"]))
        said = next(Model.script)
        calls = [] if isinstance(said, str) else [_call(*said)]
        message = {"role": "assistant", "content": said if isinstance(said, str) else "", "tool_calls": calls or None}
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        body = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}
        content = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def _call(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"id": "call-1", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


class Home:
    """A home directory with one project, and the commands of the version in it."""

    def __init__(self, root: Path) -> None:
        self.root, self.project = root, root / PROJECT
        self.project.mkdir(parents=True)
        self.environment = {
            "PATH": os.environ["PATH"], "HOME": str(root / "home"), "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@a.example",
            "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@a.example",
        }  # fmt: skip

    def beaver(self, *words: str, stdin: str = "", code: int = 0, **environment: str) -> str:
        """Return what `beaver` prints to stdout."""
        return self.run(sys.executable, "-m", "beaver_hooks.cli", *words, stdin=stdin, code=code, **environment)

    def run(self, *command: str, stdin: str = "", code: int = 0, **environment: str) -> str:
        """Run a program in the project."""
        ran = subprocess.run(
            command, cwd=self.project, env=self.environment | environment, input=stdin, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        if ran.returncode != code:
            raise SystemExit(f"{command} ended with {ran.returncode}: {ran.stdout}{ran.stderr}")
        return ran.stdout

    def configure(self, provider: dict[str, Any]) -> None:
        """Write the configuration and confirm it."""
        path = self.project / ".beaver" / "config.json"
        path.parent.mkdir(mode=0o700, exist_ok=True)
        raw = {
            "memory": {"curated": {"userCharLimit": 1000}, "local": {"enabled": True}},
            "plugins": {"disabled": ["tally"]},
            "provider": provider,
            "agent": {"maxToolRounds": 5},
        }
        path.write_text(json.dumps(raw, indent=2), "utf-8")
        self.beaver("trust", "--yes")


@contextmanager
def scripted(home: Home, *script: str | Call) -> Iterator[None]:
    """Let the agent talk to a model that says this."""
    Model.script = iter(script)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        home.configure({"kind": "openai", "baseUrl": f"http://127.0.0.1:{server.server_port}", "model": "m"})
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def talk(home: Home) -> None:
    """Hold conversations in which the model calls tools of both memories."""
    notes = {"action": "add", "target": "memory", "content": "Build with make.\nNever with ant."}
    profile = {"action": "add", "target": "user", "content": "Likes tea."}
    fact = {"title": "The quay is north of the bay.", "narrative": "As the map shows.", "type": "fact", "tags": ["map"]}
    script = [("memory", notes), ("memory", profile), ("memory_write", fact), "Noted.", "It is north.", "Hello, Anna."]
    with scripted(home, *script):
        home.beaver("run", "Remember the build, my tea and the quay.", "--session", "session-one")
        home.beaver("run", "Where is the quay?", "--session", "session-one")
        home.beaver("run", "Good day.", "--session", "session-two", "--user", "anna")


def keep(home: Home) -> None:
    """Keep, change, mention again and forget memories; edit curated ones and undo an edit."""
    lines = "".join(f"{json.dumps(each)}\n" for each in MEMORIES)
    ids = home.beaver("memory", "local", "add", "--json-lines", stdin=lines).split()
    home.beaver("memory", "local", "add", "Prefers tea to coffee.", "--type", "preference")
    home.beaver("memory", "local", "pin", ids[2])
    home.beaver("memory", "local", "unpin", ids[0], "--user", "anna")
    home.beaver("memory", "local", "forget", ids[3], "--yes")
    for target, text in (("user", "Works on Tuesdays."), ("memory", "Deploys at night."), ("memory", "A mistake.")):
        editor = home.root / "editor"
        code = f"import sys\nwith open(sys.argv[1], 'a') as file:\n    file.write('\\n§\\n{text}')"
        editor.write_text(f"#!{sys.executable}\n{code}\n", "utf-8")
        editor.chmod(stat.S_IRWXU)
        home.beaver("memory", "curated", "edit", target, EDITOR=str(editor), VISUAL=str(editor))
        editor.unlink()
    home.beaver("memory", "curated", "undo")
    home.beaver("memory", "off", "--user", MEMORY_OFF)


def trust(home: Home) -> None:
    """Confirm a skill that the repository of the project lists."""
    path = home.project / SKILL
    path.parent.mkdir(parents=True)
    path.write_text("---\nname: greet\ndescription: Greets\n---\n\nGreet in verse.\n", "utf-8")
    home.run("git", "init", "-q", "--template=", "-b", "main")
    home.run("git", "add", "-f", SKILL)
    home.run("git", "commit", "-qm", "Add a skill")
    home.configure({"kind": "offline"})
    home.beaver("trust", "--files", "--yes")
    home.beaver("run", "Hello.", "--session", "session-three", "--skill", "greet")


def shown(home: Home) -> dict[str, Any]:
    """Return what the commands of this version show of everything, as data."""
    exported = _lines(home.beaver("memory", "local", "export", "--all"))
    sessions = _lines(home.beaver("sessions", "export"))
    audit = _lines(home.beaver("audit", "tail", "-n", "10000", "--json"))
    turns = sorted({each["turn"] for each in audit if each["name"] == "turn_committed"})
    whose = [(str(each["id"]), each["owner"]["user"]) for each in exported]
    whole = [
        home.beaver("memory", "local", "show", id_, *(["--user", user] if user else []), "--json")
        for id_, user in whose
    ]
    return {
        "memories": exported,
        "shown": [json.loads(each) for each in whole],
        "sessions": sessions,
        "audit": audit,
        "verified": json.loads(home.beaver("audit", "verify", "--json")),
        "receipts": [json.loads(home.beaver("why", each, "--json")) for each in turns],
        "plugins": json.loads(home.beaver("plugins", "--json"))["plugins"],
        "files": curated_files(home.root),
        "history": home.beaver("memory", "curated", "history"),
    }


def _lines(text: str) -> list[Any]:
    return [json.loads(line) for line in text.splitlines()]


def undone(home: Home) -> dict[str, str]:
    """Return what the files of curated memory hold after one more undo, which this changes in a copy."""
    home.beaver("memory", "curated", "undo")
    return curated_files(home.root)


def curated_files(root: Path) -> dict[str, str]:
    """Return the texts of the files of curated memory by their names."""
    paths = (root / CURATED / "MEMORY.md", root / SHARED / "USER.md")
    return {path.name: path.read_text("utf-8") for path in paths}


def pack(root: Path, path: Path) -> None:
    """Pack the home directory, with `ROOT` for where it was, and without the name of the user who has made it."""
    _relocate(root, str(root), ROOT)
    with tarfile.open(path, "w:gz") as archive:
        archive.add(root / "home", "home", filter=_unnamed)


def unpack(path: Path, root: Path) -> Path:
    """Unpack a home directory into `root`, as if it had been made there; return the folder of the project."""
    with tarfile.open(path) as archive:
        archive.extractall(root, filter="data")
    _relocate(root, ROOT, str(root))
    return root / PROJECT


def _relocate(root: Path, old: str, new: str) -> None:
    """Let the records of confirmations speak of another place: they name files, and are named by hashes of names."""
    records = [each for each in (root / RECORDS).rglob("*") if each.is_file()]
    texts = {each: each.read_text("utf-8") for each in records if each.suffix == ".json"}
    named = {name for text in texts.values() for name in re.findall(f'"({re.escape(old)}[^"]*)"', text)}
    for path, text in texts.items():
        path.write_text(text.replace(old, new), "utf-8")
    for name in named:
        was, now = (hashlib.sha256(os.fsencode(each)).hexdigest() for each in (name, name.replace(old, new)))
        for path in [each for each in records if was.startswith(each.stem)]:
            path.rename(path.with_name(f"{now[: len(path.stem)]}{path.suffix}"))


def _unnamed(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def main(out: Path, make_home: Callable[[Path], Home] = Home) -> None:
    """Make the folder, and everything in it."""
    with tempfile.TemporaryDirectory() as folder:
        home = make_home(Path(folder).resolve())
        talk(home)
        keep(home)
        trust(home)
        expected = shown(home)
        with tempfile.TemporaryDirectory() as copy:
            shutil.copytree(home.root / "home", f"{copy}/home")
            expected["undone"] = undone(home)
            home.root.joinpath("home").rename(home.root / "used")
            shutil.copytree(f"{copy}/home", home.root / "home")
        out.mkdir(parents=True)
        pack(home.root, out / "state.tar.gz")
    (out / "expected.json").write_text(f"{json.dumps(expected, indent=1, ensure_ascii=False)}\n", "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
