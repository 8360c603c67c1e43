"""`move-global`: moves global memories from the database of a project to the one that all projects see."""

from typing import Any

import attrs
import click

from beaver_hooks_local.cli.options import WORD, Asked, debug_option, json_option
from beaver_hooks_local.cli.output import counted, record, say, say_json, title
from beaver_hooks_local.cli.plugin_calls import ask_long
from beaver_hooks_local.cli.progress import Bar
from beaver_hooks_local.memory import LocalMemory
from beaver_hostspecs import Shell
from beaver_memory.filters import Filters
from beaver_memory.records import Memory, Owner
from beaver_memory.store.joint import EVERYWHERE, PERSONAL_IDS

BATCH = 100
"""Memories that one call moves."""


@attrs.frozen(kw_only=True)
class Moved:
    """A moved memory; in a dry run it has no new id."""

    memory: Memory
    id: int | None = None


@click.command(name="move-global")
@click.option("--user", metavar="ID", type=WORD, help="Whose memories; everybody's and each user's unless given.")
@click.option("--dry-run", "dry", is_flag=True, help="Show what would be moved, and move nothing.")
@json_option
@debug_option
@click.pass_obj
def move_global(shell: Shell, *, user: str | None, dry: bool, as_json: bool) -> None:
    """Move memories of scope `global` from this project to where all of your projects find them.

    New ones are kept there anyway; earlier versions kept them with the project. A moved memory has another id, and its
    history begins anew.
    """
    owners = None if user is None else [Asked(user=user).sight.owner]
    moved = ask_long(shell, lambda memory, bar: _moved(memory, owners, bar, dry=dry), wrote=True)
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


def _moved(memory: LocalMemory, owners: list[Owner] | None, bar: Bar, *, dry: bool) -> list[Moved]:
    if not memory.engine.is_joint:
        return []
    done: list[Moved] = []
    for owner in memory.engine.store.owners() if owners is None else owners:
        ids = [id_ for id_ in memory.engine.store.ids(owner, (EVERYWHERE,)) if id_ <= PERSONAL_IDS]
        filters = Filters(owners=(owner,), scopes=(EVERYWHERE,), lapsed=True, now=memory.clock.now())
        for begin in range(0, len(ids), BATCH):
            some = ids[begin : begin + BATCH]
            found = memory.engine.get(some, filters)
            new = {} if dry else memory.engine.move(some, filters)
            done += [Moved(memory=each, id=new.get(each.id)) for each in found if dry or each.id in new]
            bar(begin + len(some), len(ids), "moving")
    return done


def _json(moved: Moved) -> dict[str, Any]:
    return record(moved.memory) | ({} if moved.id is None else {"moved_to": moved.id})
