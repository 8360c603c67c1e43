"""`add`: one memory from the command line or stdin, or many as JSON lines."""

import os
import select
import sys
from collections.abc import Callable, Iterator
from typing import Any

import click

from beaver_hooks_local.cli.json_lines import LONGEST_LINE, InvalidMemory, from_fields, read_lines
from beaver_hooks_local.cli.options import MOMENT, STORES, WORD, OwnerOptions, debug_option, json_option
from beaver_hooks_local.cli.output import counted, say, say_json
from beaver_hooks_local.cli.plugin_calls import NAME, ask, ask_long
from beaver_hooks_local.cli.progress import Bar
from beaver_hooks_local.memory import LocalMemory
from beaver_hostspecs import PluginError, Shell
from beaver_memory.records import Kept
from beaver_memory.runtime.reports import WriteReport
from beaver_memory.runtime.requests import ImportRequest, WriteRequest

EMBEDS = "`beaver memory reindex` embeds them now."
"""A hint for a user who has added many memories; without it, upkeep embeds them in batches between turns."""

SUPERSEDED = "It supersedes {ids}. `beaver memory local undo` forgets memory {id}, and what it superseded holds again."
"""A hint for a user whose memory contradicts others."""

SOURCE = "user"
"""The source of a memory that a user has written by hand."""

PAUSE = 0.2
"""The longest time without a call of `step`, in seconds."""

_CHUNK = 64 * 1024


@click.command()
@click.argument("words", nargs=-1)
@click.option("--narrative", help="Details and reasons, at any length.")
@click.option("--fact", "facts", multiple=True, help="One statement of the memory; may be repeated.")
@click.option(
    "--type", "type_", type=WORD, help="Its type, for example decision, preference, fact, fix, rule or event."
)
@click.option("--tag", "tags", type=WORD, multiple=True, help="A label; may be repeated.")
@click.option("--person", "people", type=WORD, multiple=True, help="A person that it is about; may be repeated.")
@click.option(
    "--file", "files", metavar="PATH", type=WORD, multiple=True, help="A file that it is about; may be repeated."
)
@click.option("--store", type=STORES, help="Who may see it; private by default.")
@click.option("--user", metavar="ID", type=WORD, help="The user who owns it; without one, every user sees it.")
@click.option("--project", metavar="NAME", type=WORD, help="The name of the project that it applies to.")
@click.option(
    "--scope",
    type=click.Choice(["project", "global"]),
    help="This project, or all of your projects; a preference applies to all by default, other types to this one.",
)
@click.option("--session", metavar="ID", type=WORD, help="The session that it comes from.")
@click.option("--when", "created_at", type=MOMENT, help="When it was said; now by default.")
@click.option("--expires", "expires_at", type=MOMENT, help="When it stops being shown.")
@click.option("--pin", "pinned", is_flag=True, help="Pin it: it is kept and ranks higher.")
@click.option("--json-lines", "many", is_flag=True, help="Read JSON lines from stdin, as `export` writes them.")
@json_option
@debug_option
@click.pass_obj
def add(
    shell: Shell, /, words: tuple[str, ...], *, many: bool, as_json: bool, user: str | None, **options: Any
) -> None:
    """Add a memory; print its id.

    Without WORDS the memory is read from stdin: the first line is its title, the other lines are its details. A memory
    that is stored already is counted as mentioned once more. One that contradicts an older memory supersedes it: that
    one is not recalled any more, and stays in the history.

    With --json-lines stdin may hold any number of memories. Each line has the fields that `export` writes, of which
    only `title` is required; the options fill in missing fields. A memory that is stored already is not counted again,
    and keeps the later of both expiry dates. An id is printed for each line.
    """
    given = {name: value for name, value in _fields(**options).items() if value not in (None, (), False)}
    if many and words:
        raise click.UsageError("With --json-lines the memories are read from stdin; leave the words out.")
    if many:
        _add_many(shell, {"source": SOURCE} | given, user, as_json=as_json)
    else:
        _add_one(shell, {"source": SOURCE} | _said(words) | given, user, as_json=as_json)


def _add_one(shell: Shell, fields: dict[str, Any], user: str | None, *, as_json: bool) -> None:
    def work(memory: LocalMemory) -> WriteReport | InvalidMemory:
        # The check for credentials knows those of the configuration only once the memory is open.
        try:
            new = from_fields(fields, OwnerOptions(user=user).here(memory), memory.operations.refusal)
        except InvalidMemory as error:
            return error
        return memory.operations.write(WriteRequest(memories=[new], supersedes=True))

    written = ask(shell, work, wrote=True)
    if isinstance(written, InvalidMemory):
        raise click.UsageError(f"{written} Nothing was added.")
    (kept,) = stored(written)
    if kept.outcome == "duplicate":
        say(f"This memory is stored already; it was mentioned {kept.mentions} times.", err=True)
    if kept.superseded:
        say(SUPERSEDED.format(ids=", ".join(f"memory {each}" for each in kept.superseded), id=kept.id), err=True)
    _tell([kept], as_json=as_json)


def _add_many(shell: Shell, given: dict[str, Any], user: str | None, *, as_json: bool) -> None:
    kept: list[Kept] = []

    def work(memory: LocalMemory, bar: Bar) -> InvalidMemory | None:
        try:
            sight = OwnerOptions(user=user).here(memory)
            incoming = lines(sys.stdin.fileno(), LONGEST_LINE, lambda: bar(len(kept), None, "adding"))
            for batch in read_lines(incoming, given, sight, memory.operations.refusal, every_owner=user is None):
                kept.extend(stored(memory.operations.import_(ImportRequest(memories=batch))))
        except InvalidMemory as error:
            return error
        return None

    try:
        refused = ask_long(shell, work, wrote=True)
    finally:
        # Batches before a failure are stored.
        _tell(kept, as_json=as_json)
    if sys.stderr.isatty() and (new := sum(each.outcome == "stored" for each in kept)):
        say(f"Added {counted(new, 'memory')}; {EMBEDS}", err=True)
    if refused is not None:
        before = "The lines before it were added" if kept else "Nothing was added"
        raise click.UsageError(f"{refused} {before}. Correct the line, and add the file again.")


def stored(written: WriteReport) -> tuple[Kept, ...]:
    """Return the outcomes of a write.

    Raises:
        PluginError: it was refused.
    """
    if written.refusal is not None:
        raise PluginError(written.refusal.sentence, plugin=NAME)
    return written.outcomes


def _fields(
    *, type_: str | None, people: tuple[str, ...], files: tuple[str, ...], project: str | None, **rest: Any
) -> dict[str, Any]:
    """Return the options by the names of a memory's fields."""
    return {**rest, "type": type_, "related_people": people, "related_files": files, "project": project}


def _said(words: tuple[str, ...]) -> dict[str, Any]:
    """Return the fields of the new memory, from the command line or from stdin."""
    text = " ".join(words) if words else _typed()
    first, _, rest = text.strip().partition("\n")
    narrative = rest.strip()
    return {"title": first.strip()} | ({"narrative": narrative} if narrative else {})


def _typed() -> str:
    if sys.stdin.isatty():
        raise click.UsageError(
            "There is no text to remember: write beaver memory add WORDS, or redirect a text to stdin."
        )
    content = sys.stdin.buffer.read(LONGEST_LINE + 1)
    if len(content) > LONGEST_LINE:
        raise click.UsageError("The text is too long for one memory; add it in parts.")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise click.UsageError("The text on stdin is not UTF-8, so nothing was added; convert it to UTF-8.") from None


def _tell(kept: list[Kept], *, as_json: bool) -> None:
    if as_json:
        say_json({"memories": [_json(each) for each in kept]})
    elif kept:
        say("\n".join(str(each.id) for each in kept))


def _json(kept: Kept) -> dict[str, Any]:
    told: dict[str, Any] = {"id": kept.id, "outcome": kept.outcome, "mentions": kept.mentions}
    return told | ({"outcome": "superseded", "superseded": list(kept.superseded)} if kept.superseded else {})


def lines(descriptor: int, longest: int, step: Callable[[], object]) -> Iterator[bytes]:
    """Yield the lines, without their ends.

    Args:
        descriptor: of the pipe.
        longest: bytes of a line; a longer line comes in parts.
        step: called repeatedly, also while no input comes; an error from it ends the reading.
    """
    rest = b""
    while True:
        step()
        if not select.select([descriptor], [], [], PAUSE)[0]:
            continue
        chunk = os.read(descriptor, _CHUNK)
        if not chunk:
            break
        *whole, rest = (rest + chunk).split(b"\n")
        yield from whole
        if len(rest) > longest:
            yield rest
            rest = b""
    if rest:
        yield rest
