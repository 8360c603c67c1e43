"""Stored state opens with this version, and nothing of it is lost: its own, and that of released versions."""

import asyncio
import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from postgres_server import FOLDER
from processes import environment, run_beaver
from selection import campaign
from state.make import MEMORY_OFF, Home, curated_files, main, unpack

from beaver_hooks import Host

HERE = Path(__file__).parent
OWN = "own"
"""The folder that this version makes."""

STORED = sorted(path.name for path in HERE.iterdir() if (path / "state.tar.gz").exists())
DISABLED = {"disabled"}
"""Plugin states that depend on the packages installed here."""


class ForkedHome(Home):
    """A home directory in which `beaver` starts at once."""

    def beaver(self, *words: str, stdin: str = "", code: int = 0, **more: str) -> str:
        """Return what `beaver` prints to stdout."""
        ran = run_beaver(*words, cwd=self.project, env=environment(**self.environment | more), stdin=stdin)
        assert code == ran.code, ran
        return ran.out


class Stored:
    """A home directory as a version left it.

    Attributes:
        expected: what that version showed of it.
    """

    def __init__(self, folder: Path, root: Path) -> None:
        self.root, self.project = root, unpack(folder / "state.tar.gz", root)
        self.expected = json.loads((folder / "expected.json").read_text("utf-8"))
        self.environment = environment(HOME=root / "home", GIT_CONFIG_GLOBAL=os.devnull)

    def beaver(self, *words: str, code: int = 0) -> str:
        """Return what `beaver` prints to stdout."""
        ran = run_beaver(*words, cwd=self.project, env=self.environment)
        assert code == ran.code, ran
        return ran.out

    def lines(self, *words: str) -> list[Any]:
        return [json.loads(line) for line in self.beaver(*words).splitlines()]

    def files(self) -> dict[str, str]:
        return curated_files(self.root)


def own_folder() -> Path:
    """Return the folder that this version makes, once per run of the tests."""
    shared = Path(os.environ[FOLDER])
    made = shared / "state"
    with (shared / "state.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            shutil.rmtree(draft := shared / "state-draft", ignore_errors=True)
            main(draft, ForkedHome)
            draft.rename(made)
    return made


@pytest.fixture(params=[OWN, *campaign(*STORED)])
def stored(request, tmp_path):
    return Stored(own_folder() if request.param == OWN else HERE / request.param, tmp_path)


def lost(old: Any, new: Any, path: str = "") -> Iterator[str]:
    """Yield what of `old` is not in `new`, where an object may have more fields than it had."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key, value in old.items():
            yield from lost(value, new[key], f"{path}.{key}") if key in new else [f"{path}.{key}"]
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for number, value in enumerate(old):
            yield from lost(value, new[number], f"{path}[{number}]")
    elif old != new:
        yield f"{path}: {old!r} is {new!r}"


def test_memories(stored):
    """Each stored memory keeps its fields and history, and no database file holds a forgotten text."""
    old = stored.expected
    new = {each["hash"]: each for each in stored.lines("memory", "local", "export", "--all")}
    shown = []
    for each in old["memories"]:
        user = ["--user", each["owner"]["user"]] if each["owner"]["user"] else []
        shown += json.loads(stored.beaver("memory", "local", "show", str(each["id"]), *user, "--json"))["memories"]

    assert [] == [*lost({each["hash"]: each for each in old["memories"]}, new)]
    assert [] == [*lost([each for one in old["shown"] for each in one["memories"]], shown)]
    assert len(old["memories"]) == len(new)
    assert not any(b"quillaja" in path.read_bytes() for path in stored.project.rglob("memory.db*"))


def test_what_is_found(stored):
    """A memory is found by its words and recalled; a superseded one is not."""
    found = stored.beaver("memory", "local", "search", "quay bay")
    closing = stored.beaver("memory", "local", "search", "office closed five")

    assert ("The quay is north of the bay." in found, "closed at five" in closing) == (True, False)


def test_sessions(stored):
    """Each session has its user, its messages and its events, at their times; one goes on."""
    sessions = stored.lines("sessions", "export")
    stored.beaver("run", "And now?", "--session", "session-one")
    texts = [each["text"] for each in stored.lines("sessions", "export", "session-one") if each["type"] == "message"]

    assert [] == [*lost(stored.expected["sessions"], sessions)]
    assert ["Where is the quay?", "It is north.", "And now?"] == texts[2:5]


def test_trail_receipts_and_health(stored):
    """The chain holds and begins as it was, each receipt is there, and plugins are in their states since the same time."""
    old = stored.expected
    verified = json.loads(stored.beaver("audit", "verify", "--expect", old["verified"]["head"], "--json"))
    audit = stored.lines("audit", "tail", "-n", "10000", "--json")
    receipts = [json.loads(stored.beaver("why", each["turn"], "--json")) for each in old["receipts"]]
    plugins = {each["name"]: each for each in json.loads(stored.beaver("plugins", "--json"))["plugins"]}

    assert (True, True) == (verified["ok"], verified["checked"] >= old["verified"]["checked"])
    assert [] == [*lost(old["audit"], audit[: len(old["audit"])]), *lost(old["receipts"], receipts)]
    health = {each["name"]: {key: each[key] for key in ("state", "since")} for each in old["plugins"]}
    assert [] == [*lost({name: each for name, each in health.items() if each["state"] not in DISABLED}, plugins)]


def test_curated_memory(stored):
    """Both files and their history are as they were, a run shows them, and the next undo takes back what it would have."""
    old = stored.expected
    history = stored.beaver("memory", "curated", "history")
    shown = stored.beaver("memory", "curated", "show")
    before = stored.files()
    stored.beaver("memory", "curated", "undo")

    assert (old["history"], old["files"], old["undone"]) == (history, before, stored.files())
    texts = [text for content in before.values() for text in content.replace("\n§\n", "\n").split("\n")]
    assert [True] * 4 == [text in shown for text in texts if text != "Never with ant."]


def test_the_profile(stored):
    """The person's other projects have the same profile, and not the notes of this one."""
    other = stored.root / "home" / "other"
    other.mkdir()
    stored.project = other
    shown = stored.beaver("memory", "curated", "show")

    assert ("1. Likes tea.\n2. Works on Tuesdays." in shown, "ant" in shown) == (True, False)


def test_confirmations(stored):
    """The configuration and the listed skill are confirmed still; another configuration is not."""
    stored.beaver("trust", "--show")
    unchanged = stored.beaver("trust", "--files")
    stored.beaver("run", "Hello.", "--skill", "greet")
    path = stored.project / ".beaver" / "config.json"
    path.write_text(path.read_text("utf-8").replace('"enabled": true', '"enabled": false'), "utf-8")
    stored.beaver("trust", "--show", code=1)

    assert "No file needs to be confirmed.\n" == unchanged


def test_the_switch(stored, monkeypatch):
    """Memory is off for the user for whom it was switched off, and on for others."""
    monkeypatch.chdir(stored.project)
    for name in [name for name in os.environ if name.startswith(("BEAVER", "XDG"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", stored.environment["HOME"])

    async def off() -> list[bool]:
        async with Host.from_config() as host:
            return [host.is_memory_off(user=user) for user in (MEMORY_OFF, "anna", None)]

    assert [True, False, False] == asyncio.run(off())
