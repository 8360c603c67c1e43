"""`forget --prove`: shows that nothing of forgotten memories is left in any file."""

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import attrs

from beaver_hooks_local.cli.output import say, say_json
from beaver_hooks_local.cli.plugin_calls import ask, call
from beaver_hooks_local.memory import location_of
from beaver_hooks_local.plugin import Local
from beaver_hostspecs import Shell
from beaver_memory.records import Memory
from beaver_memory.runtime import proof
from beaver_memory.runtime.file_scan import Needle, Trace, files_below, traces_in
from beaver_memory.runtime.profile import SqliteLocation
from beaver_memory.runtime.reports import ForgetReport

MODELS = "models"
"""The folder of embedding models, which hold no memory."""

SERVER = "The files of the PostgreSQL server were not read; its rows were counted."


@attrs.frozen(kw_only=True)
class Proof:
    """What a proof found.

    Attributes:
        before: where the memory was found before it was forgotten.
        after: where it was found afterwards.
        hits: how many results searches had before and afterwards; `None` if none was made.
        left: rows that still held content of it, by place.
        files: how many files were read afterwards.
        has_files: whether the database lies in files that were read.
    """

    before: Sequence[Trace]
    after: Sequence[Trace]
    hits: tuple[int, int] | None = None
    left: dict[str, int]
    files: int
    has_files: bool = True

    @property
    def is_detectable(self) -> bool:
        """Whether it was found before: else its absence shows nothing."""
        return bool(self.before or not self.has_files) and (self.hits is None or self.hits[0] > 0)

    @property
    def holds(self) -> bool:
        """Whether it was found before, and nowhere afterwards."""
        return self.is_detectable and not (self.after or self.left or (self.hits or (0, 0))[1])


def proved(shell: Shell) -> Proof:
    """Plant a memory of a throwaway owner, forget it, look for it, and remove the owner, also after an interruption."""
    own, has_files = _places(shell)
    places = [*own, *(folder.parent.parent for folder in (shell.folder(), shell.person_folder()))]
    owner = proof.throwaway(datetime.now(UTC))
    try:
        sentinel = ask(shell, lambda memory: proof.plant(memory.operations, owner), wrote=True)
        first = ask(shell, lambda memory: proof.found(memory.operations, owner, sentinel.words))
        before = traces_in(files_below(places, leave_out=[MODELS]), sentinel.needles)
        report = ask(shell, lambda memory: proof.forget(memory.operations, owner), wrote=True)
        second = ask(shell, lambda memory: proof.found(memory.operations, owner, sentinel.words))
        files = files_below(places, leave_out=[MODELS])
        after = traces_in(files, sentinel.needles)
    finally:
        ask(shell, lambda memory: proof.remove(memory.operations, owner), wrote=True)
    return Proof(
        before=before, after=after, hits=(first, second), left={**report.left}, files=len(files), has_files=has_files
    )


def proved_of(
    shell: Shell, memories: Sequence[Memory], forget: Callable[[], ForgetReport]
) -> tuple[Proof, ForgetReport]:
    """Forget memories, and look for the sequences of words that no other memory has, in the files of the memory."""
    places, has_files = _places(shell)
    needles: tuple[Needle, ...] = ask(shell, lambda memory: proof.distinctive(memory.operations, memories))
    before = traces_in(files_below(places, leave_out=[MODELS]), needles)
    report = forget()
    files = files_below(places, leave_out=[MODELS])
    after = traces_in(files, needles)
    return Proof(before=before, after=after, left={**report.left}, files=len(files), has_files=has_files), report


def tell(found: Proof) -> None:
    """Print a proof."""
    if found.hits is not None:
        say("Planted a random memory of a throwaway owner, and forgot it.")
        say(f"Searches had {found.hits[0]} results with it before, and {found.hits[1]} afterwards.")
    say("\n".join(["Files that held it:", *_lines(found.before, lambda path: path.name)]))
    say(f"Files that hold it now, of {found.files:,}: {'' if found.after else 'none'}")
    for line in _lines(found.after, str):
        say(line)
    for place, count in found.left.items():
        say(f"Still there: {place} {count:,}.", err=True)
    if not found.has_files:
        say(SERVER)
    if not found.is_detectable:
        say("Nothing is proved: the memory was not detectable before it was forgotten.", err=True)
    else:
        verdict = "Proved: it was there, and it is gone." if found.holds else "Not forgotten everywhere."
        say(verdict, err=not found.holds)


def as_record(found: Proof) -> dict[str, Any]:
    """Return a proof as plain data."""
    traces = {name: [{"file": str(each.path), "form": each.form} for each in getattr(found, name)] for name in _TRACES}
    hits = {} if found.hits is None else {"hits_before": found.hits[0], "hits_after": found.hits[1]}
    return {
        "proved": found.holds,
        "detectable": found.is_detectable,
        **traces,
        **hits,
        "left": found.left,
        "files": found.files,
    }


_TRACES = ("before", "after")


def say_proof(found: Proof, *, as_json: bool) -> None:
    """Print a proof as text or as JSON."""
    if as_json:
        say_json(as_record(found))
    else:
        tell(found)


def _places(shell: Shell) -> tuple[list[Path], bool]:
    """Return the files and folders of the memory, and whether its database is one of them."""

    async def where(plugin: Local) -> tuple[list[Path], bool]:
        location = location_of(plugin.settings, plugin.setup)
        if not isinstance(location, SqliteLocation):
            return [], False
        given = location.database_path
        return ([] if given is None else [*given.parent.glob(f"{given.name}*")]), True

    more, has_files = call(shell, where)
    return [shell.folder(), shell.person_folder(), *more], has_files


def _lines(traces: Sequence[Trace], shown: Callable[[Path], str]) -> Iterator[str]:
    forms: dict[Path, list[str]] = {}
    for each in traces:
        forms.setdefault(each.path, []).append(each.form)
    return (f"  {shown(path)}: {', '.join(names)}" for path, names in forms.items())
