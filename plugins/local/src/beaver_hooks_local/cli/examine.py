"""`examine`: verifies the rows of databases without opening a host; `beaver doctor` calls it."""

from collections.abc import Iterator
from pathlib import Path

import click

from beaver_hooks_local.cli.output import counted
from beaver_memory.errors import StoreError
from beaver_memory.runtime.examination import Examination, examined
from beaver_memory.runtime.profile import DATABASE

REMEDY = "run: beaver memory check, and beaver memory export --damaged -o FILE; then restore a backup"

PARKED = "run: beaver memory queue, with --user ID for those of a user; --retry captures them, --drop KEY erases one"

WHOLE = "`beaver memory check` reads all of them"


@click.command(hidden=True)
@click.argument("folders", nargs=-1, type=click.Path(path_type=Path))
@click.option("--database", type=click.Path(path_type=Path), help="A database in place of those in the folders.")
def examine(folders: tuple[Path, ...], *, database: Path | None) -> list[tuple[str, str, str]]:
    """Verify the rows of the databases in FOLDERS, at most the newest of a large one; change nothing.

    The result, a list of level, text and remedy for each database, is for the caller in this process.
    """
    paths = [database] if database else [folder / DATABASE for folder in folders]
    return [finding for path in dict.fromkeys(paths) if path.exists() for finding in _findings(path)]


def _findings(path: Path) -> Iterator[tuple[str, str, str]]:
    try:
        seen = examined(path)
    except StoreError as error:
        yield "problem", str(error), "see the reason, and run: beaver memory check"
        return
    yield _rows(path, seen)
    if seen.parked:
        yield "problem", f"{path}: {counted(seen.parked, 'turn')} could not be captured (parked)", PARKED


def _rows(path: Path, seen: Examination) -> tuple[str, str, str]:
    if seen.is_older:
        return "ok", f"{path} is of an earlier version; the next command that opens it brings it over", ""
    if seen.problems:
        first = "; ".join(each.rstrip(".") for each in seen.problems[:3])
        more = f"; and {len(seen.problems) - 3} more" if seen.problems[3:] else ""
        return "problem", f"{path}: {first}{more}", REMEDY
    if seen.examined < seen.memories:
        text = f"{path}: the newest {seen.examined:,} of {counted(seen.memories, 'memory')} are intact; {WHOLE}"
        return "ok", text, ""
    return "ok", f"{path}: {counted(seen.memories, 'memory')}, intact", ""
