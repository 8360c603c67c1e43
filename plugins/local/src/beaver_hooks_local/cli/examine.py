"""`examine`: verifies the rows of databases without opening a host; `beaver doctor` calls it."""

from pathlib import Path

import click

from beaver_hooks_local.cli.output import counted
from beaver_memory.errors import StoreError
from beaver_memory.runtime.examination import Examination, examined
from beaver_memory.runtime.profile import DATABASE
from beaver_toolkit.redaction.redactor import Policy

REMEDY = "run: beaver memory check"

FORGET = "change the secret where it is used, and erase the memory: `beaver memory forget ID`"

MOST_NAMED = 10
"""Memories with secrets that are named; the others are counted."""

Finding = tuple[str, str, str]
"""Level, text and remedy."""

PARKED = "run: beaver memory queue, with --user ID for those of a user; --retry captures them, --drop KEY erases one"

WHOLE = "`beaver memory check` reads all of them"


@click.command(hidden=True)
@click.argument("folders", nargs=-1, type=click.Path(path_type=Path))
@click.option("--database", type=click.Path(path_type=Path), help="A database in place of those in the folders.")
@click.option("--redact", "kinds", multiple=True, help="What else is a secret: `emails`, `phones`.")
def examine(folders: tuple[Path, ...], *, database: Path | None, kinds: tuple[str, ...]) -> list[Finding]:
    """Verify the rows of the databases in FOLDERS, of the project and the person; change nothing.

    Of a large database only the newest are verified. Memories that hold a secret are counted.

    The result, a list of level, text and remedy for each database, is for the caller in this process.
    """
    paths = [database] if database else [folder / DATABASE for folder in folders]
    there = {path: bool(number) for number, path in enumerate(dict.fromkeys(paths)) if path.exists()}
    policy = Policy(emails="emails" in kinds, phones="phones" in kinds)
    return [found for path, of_person in there.items() for found in _findings(path, policy, of_person=of_person)]


def _findings(path: Path, policy: Policy, *, of_person: bool) -> list[Finding]:
    try:
        seen = examined(path, policy, of_person=of_person)
    except StoreError as error:
        text, _, remedy = str(error).rpartition("; ")
        return [("problem", text, remedy)]
    return [_state(path, seen), *_secrets(path, seen), *_parked(path, seen)]


def _parked(path: Path, seen: Examination) -> list[Finding]:
    """Return the turns that wait for the user."""
    if not seen.parked:
        return []
    return [("problem", f"{path}: {counted(seen.parked, 'turn')} could not be captured (parked)", PARKED)]


def _secrets(path: Path, seen: Examination) -> list[Finding]:
    """Return how many memories hold secrets, and which; never a text of them."""
    if not seen.refused:
        return []
    named = ", ".join(map(str, seen.refused[:MOST_NAMED]))
    more = f" and {len(seen.refused) - MOST_NAMED} more" if seen.refused[MOST_NAMED:] else ""
    hold = "memory holds" if len(seen.refused) == 1 else "memories hold"
    text = f"{path}: {len(seen.refused):,} {hold} a secret that is refused today: {named}{more}"
    return [("warning", text, FORGET)]


def _state(path: Path, seen: Examination) -> Finding:
    if seen.problems:
        first = "; ".join(each.rstrip(".") for each in seen.problems[:3])
        more = f"; and {len(seen.problems) - 3} more" if seen.problems[3:] else ""
        return "problem", f"{path}: {first}{more}", REMEDY
    if seen.examined < seen.memories:
        text = f"{path}: the newest {seen.examined:,} of {counted(seen.memories, 'memory')} are intact; {WHOLE}"
        return "ok", text, ""
    return "ok", f"{path}: {counted(seen.memories, 'memory')}, intact", ""
