"""Runs `beaver` as a process of its own, which starts at once: it is forked from one that has imported everything."""

import asyncio
import atexit
import json
import os
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import attrs

TIMEOUT = 120
GIT = {
    "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@a.example", "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@a.example", "GIT_CONFIG_GLOBAL": os.devnull,
}  # fmt: skip
"""What git needs to know of the user."""

OUTSIDE = ("BEAVER", "COV", "GIT", "PIP_", "XDG_")


@attrs.frozen(kw_only=True)
class Ran:
    """What a process printed, and its exit code."""

    out: str
    err: str
    code: int

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def environment(**more: object) -> dict[str, str]:
    """Return the environment of this process without the variables that would change `beaver`, and with `more`."""
    return {name: value for name, value in os.environ.items() if not name.startswith(OUTSIDE)} | {
        name: str(value) for name, value in more.items()
    }


def run_beaver(*words: object, cwd: Path, env: dict[str, str], stdin: str | bytes = b"") -> Ran:
    """Run `beaver` to its end."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        request = {"words": [str(word) for word in words], "cwd": str(cwd), "environment": env}
        (folder / "request").write_text(json.dumps(request), "utf-8")
        (folder / "stdin").write_bytes(stdin.encode() if isinstance(stdin, str) else stdin)
        code = _server().run(folder)
        out, err = ((folder / name).read_bytes().decode() for name in ("stdout", "stderr"))
    return Ran(out=out, err=err, code=code)


async def beaver(*words: object, cwd: Path, env: dict[str, str], stdin: str | bytes = b"") -> Ran:
    """Run `beaver` to its end, while the event loop goes on."""
    return await asyncio.to_thread(run_beaver, *words, cwd=cwd, env=env, stdin=stdin)


def in_child(function: Callable[[], object]) -> str:
    """Return what `function` returns or raises in a forked child, as text."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        # Python warns of forking with threads, which this helper does on purpose.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if not child:
        try:
            said = repr(function())
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        os.write(writing, said.encode())
        os._exit(7)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        said = pipe.read()
    assert 7 == os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return said


class _Server:
    """The process that forks."""

    def __init__(self) -> None:
        program = Path(__file__).with_name("fork_server.py")
        self._process = subprocess.Popen(
            [sys.executable, program], env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._turn = threading.Lock()
        atexit.register(self._end)

    def run(self, folder: Path) -> int:
        """Let it fork a process for the request in a folder; return the exit code."""
        with self._turn:
            hanging = threading.Timer(TIMEOUT, self._process.kill)
            hanging.start()
            try:
                print(folder, file=self._process.stdin, flush=True)
                return int(self._process.stdout.readline())
            finally:
                hanging.cancel()

    def _end(self) -> None:
        with self._process:
            self._process.stdin.close()


_server = cache(_Server)
