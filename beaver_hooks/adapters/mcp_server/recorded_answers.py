"""A server's answers to the requests that open a connection, which the next run gives at once.

The record belongs to the user, beside the confirmations of configurations, and in no folder that a repository can
contain. It holds only texts that clients get anyway: names, descriptions and schemas of tools, rules of plugins. An
answer counts only for the same caller, configuration, memory switch, installed distributions and set variables, and as
long as no file of the plugins' code has changed. So it lists a tool for a caller exactly if the last run did.
"""

import contextlib
import hashlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from beaver_hooks import __version__
from beaver_hooks.adapters.mcp_server.identity import Identity
from beaver_hooks.config import LoadedConfig
from beaver_hooks.config.trust import record_path
from beaver_toolkit.files import replace, sweep

FOLDER = "mcp-answers"
VERSION = 1
SWITCH = "memory-off.json"
MOST_RECORDS, MOST_ANSWERS = 64, 16
LARGEST = 8 * 1024 * 1024
OURS = frozenset({"beaver_hooks", "beaver_hostspecs"})
"""Packages whose code determines the answers, beside those of the plugins."""

SLACK = 50_000_000
"""Nanoseconds by which the clock of a file system may be behind."""

Answers = dict[str, Any]
Stamp = list[int] | None


@attrs.define(kw_only=True, eq=False)
class RecordedAnswers:
    """The answers of the last run under the same conditions, and those of this run.

    Attributes:
        folder: the folder of the records, one for each digest of conditions.
        condition: returns a digest of all conditions that are known before the plugins are loaded.
        begun: the digest at the start.
        started: the time of the start, in nanoseconds since 1970: a newer file may differ from the loaded code.
        packages: the packages whose modules determine the answers.
    """

    folder: Path
    condition: Callable[[], str]
    begun: str
    started: int
    packages: frozenset[str] = OURS
    _known: Answers = attrs.field(factory=dict)
    _retired: bool = attrs.field(default=False, init=False)
    _fresh: Answers = attrs.field(factory=dict, init=False)

    @classmethod
    def of(cls, loaded: LoadedConfig, identity: Identity, environment: Mapping[str, str]) -> "RecordedAnswers":
        """Return the record for a caller under a configuration; an empty one if it cannot be read."""

        def condition() -> str:
            return _digest(_conditions(loaded, identity, environment))

        started, begun = time.time_ns() - SLACK, condition()
        folder = record_path(environment).with_name(FOLDER)
        known = _read(_path(folder, begun))
        return cls(folder=folder, condition=condition, begun=begun, started=started, known=known)

    def get(self, request: str) -> Any:
        """Return the recorded answer to a request, or `None`; from any thread."""
        return None if self._retired else self._known.get(request)

    def retire(self, packages: Iterable[str]) -> None:
        """Give no more answers: the host is open.

        Args:
            packages: the packages of the plugins, whose modules determine the answers, too.
        """
        self._retired = True
        self.packages |= {*packages}

    def keep(self, request: str, answer: object) -> None:
        """Keep the first answer of this run to a request; `None` removes the recorded one."""
        self._fresh.setdefault(request, answer)

    @property
    def is_news(self) -> bool:
        """Whether this run kept an answer that the record lacks."""
        return any(self._known.get(request) != answer for request, answer in self._fresh.items())

    def save(self) -> None:
        """Save the kept answers, unless a condition has changed since the start. A failure is logged."""
        answers = [
            (request, answer) for request, answer in {**self._known, **self._fresh}.items() if answer is not None
        ]
        self._known = dict(answers[-MOST_ANSWERS:])
        files = {name: _stamp(name) for name in _files(self.packages)}
        newest = max((each[-1] for each in files.values() if each is not None), default=0)
        if newest >= self.started or self.condition() != self.begun:
            return
        try:
            self._write({"version": VERSION, "files": files, "answers": self._known})
        except OSError as error:
            from beaver_hooks.log import make_log  # noqa: PLC0415 - importing it takes long

            make_log().info("mcp_answers_not_recorded", error=type(error).__name__)

    def _write(self, record: object) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = _path(self.folder, self.begun)
        sweep(path)
        replace(path, json.dumps(record).encode("ascii"))
        by_age = sorted(self.folder.glob("*.json"), key=lambda each: each.stat().st_mtime_ns)
        for old in by_age[:-MOST_RECORDS]:
            old.unlink(missing_ok=True)


def _path(folder: Path, condition: str) -> Path:
    return folder / f"{condition}.json"


def _read(path: Path) -> Answers:
    """Return the recorded answers; none if a file behind them has changed, or the record is invalid."""
    try:
        record = json.loads(_content(path) or b"{}")
    except (ValueError, RecursionError):
        return {}
    known = isinstance(record, dict) and record.get("version") == VERSION
    if not known or any(_stamp(name) != stamp for name, stamp in record["files"].items()):
        return {}
    with contextlib.suppress(OSError):
        os.utime(path)  # the most recently used records are kept
    answers: Answers = record["answers"]
    return answers


def _conditions(loaded: LoadedConfig, identity: Identity, environment: Mapping[str, str]) -> list[object]:
    """Return all conditions of the answers that are known before the plugins are loaded."""
    config = _content(loaded.path) if loaded.path is not None else None
    return [
        VERSION, __version__, sys.version, sys.path, [*_distributions(sys.path)], str(loaded.state_folder),
        str(loaded.path), None if config is None else hashlib.sha256(config).hexdigest(), repr(identity),
        [] if config is None else sorted(name for name in environment if name.encode("utf-8", "replace") in config),
        str(_content(loaded.state_folder / SWITCH)),
    ]  # fmt: skip


def _digest(value: object) -> str:
    """Return a digest of plain data."""
    return hashlib.sha256(json.dumps(value).encode("ascii")).hexdigest()


def _distributions(folders: Iterable[str]) -> Iterator[list[object]]:
    """Yield the installed distributions in folders, by their metadata, which an installation rewrites."""
    for folder in folders:
        try:
            found = [each for each in os.scandir(folder or ".") if each.name.endswith((".dist-info", ".egg-info"))]
            yield [folder, sorted([each.name, each.stat().st_mtime_ns] for each in found)]
        except OSError:
            yield [folder, None]  # an archive, or a missing folder


def _content(path: Path) -> bytes | None:
    try:
        with path.open("rb") as file:
            return file.read(LARGEST)
    except OSError:
        return None


def _files(packages: frozenset[str]) -> list[str]:
    """Return the files of the loaded modules of packages."""
    modules = [module for name, module in [*sys.modules.items()] if name.partition(".")[0] in packages]
    return sorted({file for each in modules if isinstance(file := getattr(each, "__file__", None), str)})


def _stamp(path: str) -> Stamp:
    """Return a value that changes with a file."""
    try:
        found = os.stat(path)  # noqa: PTH116 - hundreds of them, before the first answer
    except OSError:
        return None
    return [found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns]
