"""`move-global`: moves global memories from the database of a project to the one that all projects see."""

from collections.abc import Iterator
from typing import Any

import attrs
import click

from beaver_hooks_local.cli.options import WORD, OwnerOptions, debug_option, json_option
from beaver_hooks_local.cli.output import counted, record, say, say_json, title
from beaver_hooks_local.cli.plugin_calls import ask_long
from beaver_hooks_local.cli.progress import Bar
from beaver_hooks_local.memory import LocalMemory
from beaver_hostspecs import Shell
from beaver_memory.filters import Filters
from beaver_memory.records import Memory, Owner
from beaver_memory.runtime.requests import InspectionRequest, MoveRequest
from beaver_memory.views import View

BATCH = 100
"""Memories that one call moves."""


@attrs.frozen(kw_only=True)
class MovedMemory:
    """A moved memory; in a dry run it has no new id."""

    memory: Memory
    id: int | None = None


@click.command(name="move-global")
@click.option(
    "--user",
    metavar="ID",
    type=WORD,
    help="The user whose memories are moved; all unless given.",
)
@click.option("--dry-run", "dry", is_flag=True, help="Show what would be moved, and move nothing.")
@json_option
@debug_option
@click.pass_obj
def move_global(shell: Shell, *, user: str | None, dry: bool, as_json: bool) -> None:
    """Move memories of scope `global` from this project to where all of your projects find them.

    New ones are kept there anyway; earlier versions kept them with the project. A moved memory has another id, and its
    history begins anew.
    """
    moved = ask_long(shell, lambda memory, bar: _moved(memory, user, bar, dry=dry), wrote=True)
    if as_json:
        say_json({"dry_run": dry, "moved": [_json(each) for each in moved]})
    elif not moved:
        say("There is nothing to move: no memory of scope `global` lies with this project alone.")
    elif dry:
        say("\n".join(f"[{each.memory.id}] {title(each.memory)}" for each in moved))
        say(f"Nothing was moved; without --dry-run {counted(len(moved), 'memory')} would be.")
    else:
        say("\n".join(f"[{each.memory.id}] is [{each.id}] now: {title(each.memory)}" for each in moved))
        say(f"Moved {counted(len(moved), 'memory')}; all of your projects find them.")


def _moved(memory: LocalMemory, user: str | None, bar: Bar, *, dry: bool) -> list[MovedMemory]:
    owners = [] if user is None else [OwnerOptions(user=user).here(memory).owner]
    if user is None:
        request = InspectionRequest(owners=(), every_owner=True, embeddings=False, figures=False)
        owners = list(memory.operations.inspect(request).owners)
    return [each for owner in owners for each in _pages(memory, owner, bar, dry=dry)]


def _pages(memory: LocalMemory, owner: Owner, bar: Bar, *, dry: bool) -> Iterator[MovedMemory]:
    after: int | None = 0
    done = 0
    while after is not None:
        own = Filters(view=View(owners=(owner,), now=memory.clock.now()))
        page = memory.operations.move(MoveRequest(own=own, after=after, limit=BATCH, dry_run=dry))
        for each in page.memories:
            if dry or each.id in page.moved:
                yield MovedMemory(memory=each, id=page.moved.get(each.id))
        done += len(page.memories)
        if page.memories:
            bar(done, done + page.left, "moving")
        after = page.next_after or None


def _json(moved: MovedMemory) -> dict[str, Any]:
    return record(moved.memory) | ({} if moved.id is None else {"moved_to": moved.id})
