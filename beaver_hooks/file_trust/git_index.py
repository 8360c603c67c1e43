"""Finds the files in git's index, which a `git pull` changes without a question.

It runs git itself, so that no code from a repository runs. It caches the answer until an index changes, as a `git pull`
can happen while a process lives.
"""

import os
import shutil
import subprocess
import time
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import attrs

GIT = ".git"
SECONDS = 5.0
"""The deadline of a git command; a slower git counts as unavailable."""

AGAIN = 30.0
"""Seconds after which an unavailable git is tried again."""

MOMENT = 0.1
"""Seconds for which the place of a folder is cached, so that the steps of one write look for it once."""

UNDER_WAY = 60.0
"""Seconds before the time of git's lock file; a file changed later may be git's although it is not listed yet."""

# Git runs no program of the configuration, and fetches no object for an incomplete index.
_OPTIONS = ("--no-pager", "--no-optional-locks", "-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}")
_SAFE = {"GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "", "LC_ALL": "C"}

State = tuple[int, ...]
Identity = tuple[State, State]


@attrs.frozen(kw_only=True)
class _Answer:
    """Git's answer: the files, or `None` if git was unavailable, and the state of the index at that time."""

    names: frozenset[str] | None
    identity: Identity
    when: float


class GitIndexes:
    """The git indexes of the repositories that contain given files.

    Args:
        scope: a folder that git lists as a whole, so that one answer serves every file in it.
        environment: where git is found, and whose configuration says which repositories are safe.
        now: a clock that never runs backwards.
    """

    def __init__(
        self, scope: Path, environment: Mapping[str, str], *, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._scope = _real(scope)
        self._environment = environment
        self._now = now
        self._known: dict[tuple[Path, Path], _Answer] = {}
        self._folders: dict[Path, tuple[State, Path]] = {}
        self._places: dict[Path, tuple[float, Path, tuple[Path, ...]]] = {}

    def lists(self, path: Path) -> bool | None:
        """Whether an index lists a file; `None` if git is unavailable, or may be writing the file now."""
        folder, roots = self._place(path.parent)
        # The file itself may be a link, as git would list it.
        answers = {self._answer(root, folder / path.name) for root in roots}
        return True if True in answers else None if None in answers else False

    def listed(self) -> tuple[Path, ...]:
        """Return the existing files in the scope that an index lists."""
        names = [self._names(root, self._scope) or () for root in repositories(self._scope)]
        there = {Path(where, each) for where, _, files in os.walk(self._scope) for each in files} if any(names) else ()
        return tuple(sorted(each for each in there if any(_folded(each) in found for found in names)))

    def _place(self, folder: Path) -> tuple[Path, tuple[Path, ...]]:
        """Return the folder without links, and the repositories that contain it."""
        now, known = self._now(), self._places.get(folder)
        if known is None or now >= known[0] + MOMENT:
            real = _real(folder)
            known = self._places[folder] = now, real, tuple(repositories(real))
        return known[1:]

    def _answer(self, root: Path, real: Path) -> bool | None:
        scope = self._scope if real.is_relative_to(self._scope) and self._scope.is_relative_to(root) else real.parent
        names = self._names(root, scope)
        if names is None:
            return None
        if _folded(real) in names:
            return True
        return None if _is_under_way(self._folder(root)[1], real) else False

    def _names(self, root: Path, scope: Path) -> frozenset[str] | None:
        """Return the files that the index of one repository lists in a folder, or `None` if git is unavailable."""
        state, folder = self._folder(root)
        identity, known = (state, _state(f"{folder}/index")), self._known.get((root, scope))
        if known is None or known.identity != identity or self._is_to_ask_again(known):
            names = _asked(root, scope, self._environment)
            known = self._known[root, scope] = _Answer(names=names, identity=identity, when=self._now())
        return known.names

    def _folder(self, root: Path) -> tuple[State, Path]:
        """Return the state of a `.git`, and the folder that it is or points to."""
        state, known = _state(f"{root}/{GIT}"), self._folders.get(root)
        if known is None or known[0] != state:
            known = self._folders[root] = state, _own_folder(root)
        return known

    def _is_to_ask_again(self, known: _Answer) -> bool:
        return known.names is None and self._now() >= known.when + AGAIN


def _real(path: Path) -> Path:
    """Return a path without links; the path unchanged if no file can have that name."""
    try:
        return Path(os.path.realpath(path))
    except ValueError:
        return path.absolute()


def repositories(folder: Path) -> Iterator[Path]:
    """Yield the folders at and above `folder` that hold a `.git`: a folder, or in a worktree or submodule a file."""
    # As texts: it runs with every read, and paths take four times as long.
    where, above = str(folder), ""
    while where != above:
        if os.path.lexists(f"{where}{os.sep}{GIT}"):
            yield Path(where)
        where, above = os.path.dirname(where), where  # noqa: PTH120


def _asked(root: Path, scope: Path, environment: Mapping[str, str]) -> frozenset[str] | None:
    """Return the files that git lists in a folder, in the form of `_folded`; `None` if git is unavailable."""
    program = shutil.which("git", path=environment.get("PATH"))
    if program is None or not Path(program).is_absolute():  # a git in the working directory may be foreign code
        return None
    # Git's own variables would lead to another repository or index, and so would a repository further up.
    kept = {name: value for name, value in environment.items() if not name.startswith("GIT_")}
    inside = scope.relative_to(root).as_posix()
    spec = ":(top)" if inside == "." else f":(top,literal,icase){inside}"
    try:
        ran = subprocess.run(  # noqa: S603 - git, with fixed options
            [program, *_OPTIONS, "-C", root, "ls-files", "-z", "--cached", "--", spec],
            env={**kept, **_SAFE, "GIT_CEILING_DIRECTORIES": str(root.parent)},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=SECONDS, check=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    return frozenset(_folded(root / os.fsdecode(each)) for each in ran.stdout.split(b"\0") if each)


def _is_under_way(folder: Path, real: Path) -> bool:
    """Whether git is changing files now, and may have written this one: it writes its index last."""
    try:
        return os.stat(f"{folder}/index.lock").st_mtime - UNDER_WAY < real.stat().st_mtime  # noqa: PTH116 - as above
    except OSError:
        return False


def _own_folder(root: Path) -> Path:
    """Return the folder of a repository's index: `.git`, or the folder that the file `.git` names."""
    path = root / GIT
    try:
        _, found, named = path.read_text(encoding="utf-8", errors="surrogateescape").partition("gitdir: ")
    except OSError:  # it is a folder
        return path
    return root / named.strip() if found else path


def _state(path: str) -> State:
    try:
        found = os.stat(path)  # noqa: PTH116 - as above
    except OSError:
        return ()
    return found.st_ino, found.st_size, found.st_mtime_ns


def _folded(path: Path) -> str:
    """Return a path in the form that a file system compares if it ignores case and the form of accents."""
    return unicodedata.normalize("NFC", str(path)).casefold()
