"""`list`, `search` and `show`."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import attrs
import click

from beaver_hooks_local.cli.operation_commands import change_lines
from beaver_hooks_local.cli.options import (
    ID,
    OwnerOptions,
    asked,
    debug_option,
    filtered,
    json_option,
    limit_option,
    user_option,
)
from beaver_hooks_local.cli.output import HEADS, counted, plain, record, row, say, say_json, table, whole
from beaver_hooks_local.cli.plugin_calls import NAME, ask
from beaver_hooks_local.errors import damaged_text
from beaver_hooks_local.memory import LocalMemory
from beaver_hostspecs import PluginError, Shell
from beaver_memory.filters import Filters
from beaver_memory.records import Change, Memory
from beaver_memory.runtime.reports import MemoriesReport, RecallReport
from beaver_memory.runtime.requests import GetRequest, HistoryRequest, InspectionRequest, ListRequest, RecallRequest

BY_WORDS = "Found by words only, because the embedder does not work now ({})."
BY_STORE = "Found by the words in the database only, because no index could be built ({})."
OTHER_PROJECTS = "Memories of other projects in this database were left out: --project NAME shows them."
NOT_RERANKED = "Not ranked again by their tokens, as memory.local.recall.reranker wants ({})."


@click.command(name="list")
@filtered
@limit_option(20)
@json_option
@debug_option
@click.pass_obj
def list_(shell: Shell, /, *, limit: int, as_json: bool, **options: Any) -> None:
    """List memories, the newest first."""
    which = asked(**options)

    def work(memory: LocalMemory) -> tuple[MemoriesReport, str, datetime]:
        filters = which.filters(memory)
        found = memory.operations.list(ListRequest(visible=filters, limit=limit))
        return found, _left_out(memory, which), filters.view.now

    found, left_out, now = ask(shell, work)
    if as_json:
        say_json({"memories": [record(each) for each in found.memories], "more": found.has_more})
    elif found.memories:
        say(table([HEADS, *(row(each, now) for each in found.memories)]))
        if found.has_more:
            say(f"There are more than {limit:,}; raise --limit to see them.")
    else:
        say(_nothing("There are no memories yet.", which, left_out))


@click.command()
@click.argument("words", nargs=-1, required=True)
@filtered
@limit_option(10)
@json_option
@debug_option
@click.pass_obj
def search(shell: Shell, /, words: tuple[str, ...], *, limit: int, as_json: bool, **options: Any) -> None:
    """Search memories, the best match first.

    Example: beaver memory search which branch --type decision --after 2026-01-01

    "Exact words" in quotes and prefix* must be in each memory; the other words rank. The shell removes quotes and
    expands stars, so put the words into single quotes.

    Example: beaver memory search '"blue whale" config* migration'
    """
    which = asked(**options)
    if not " ".join(words).strip():
        raise click.UsageError("There are no words to search for; `beaver memory list` lists all memories.")

    def work(memory: LocalMemory) -> tuple[RecallReport, str, datetime]:
        filters = which.filters(memory)
        request = RecallRequest(query=" ".join(words), operators=True, visible=filters, limit=limit)
        found = memory.operations.recall(request)
        return found, _left_out(memory, which), filters.view.now

    found, left_out, now = ask(shell, work)
    if as_json:
        hits = [{**record(hit.memory), "score": round(hit.score, 6)} for hit in found.hits]
        facts = {
            "keyword_only": found.keyword_only,
            "without_index": found.without_index,
            "not_reranked": found.not_reranked,
        }
        say_json({"hits": hits, "candidates": found.candidates, **facts})
        return
    warn(found)
    rows = [[f"{hit.score:.3f}", *row(hit.memory, now)] for hit in found.hits]
    say(table([["score", *HEADS], *rows]) if rows else _nothing("No memory was found.", which, left_out))


@click.command()
@click.argument("ids", metavar="ID...", nargs=-1, required=True, type=ID)
@user_option
@json_option
@debug_option
@click.pass_obj
def show(shell: Shell, ids: tuple[int, ...], *, user: str | None, as_json: bool) -> None:
    """Show whole memories with their history."""
    which = OwnerOptions(user=user)

    def work(memory: LocalMemory) -> list[tuple[Memory, Sequence[Change]]]:
        # A user who names an id wants to see the memory even if it has lapsed.
        filters = attrs.evolve(which.filters(memory), lapsed=True)
        found = memory.operations.get(GetRequest(ids=ids, visible=filters)).memories
        return [
            (each, memory.operations.history(HistoryRequest(id=each.id, visible=filters)).changes) for each in found
        ]

    found = ask(shell, work)
    ensure_all(shell, ids, [each for each, _ in found], which)
    if as_json:
        say_json({"memories": [{**record(each), "history": _changes(changes)} for each, changes in found]})
    else:
        say("\n\n".join(f"{whole(each)}\n{change_lines(changes)}" for each, changes in found))


def warn(found: RecallReport) -> None:
    """Say why a search found less than usual, if it did."""
    if found.keyword_only is not None:
        say(BY_WORDS.format(found.keyword_only), err=True)
    if found.without_index is not None:
        say(BY_STORE.format(found.without_index), err=True)
    if found.not_reranked is not None:
        say(NOT_RERANKED.format(found.not_reranked), err=True)


def ensure_all(shell: Shell, ids: tuple[int, ...], found: Sequence[Memory], which: OwnerOptions) -> None:
    """Refuse ids that are not among the found memories.

    Raises:
        PluginError: some of them are damaged.
        UsageError: there are such ids; says so of memories without a user, where a user was named.
    """
    missing = [each for each in dict.fromkeys(ids) if each not in {memory.id for memory in found}]
    if not missing:
        return
    got = ask(shell, lambda memory: _got(memory, missing, which))
    if got.damaged:
        raise PluginError(damaged_text(got.damaged), plugin=NAME)
    if which.user and (without_user := [str(each.id) for each in got.memories if not each.owner.user]):
        raise click.UsageError(f"No user owns memory {', '.join(without_user[:10])}; leave --user out.")
    if elsewhere := [str(each.id) for each in ask(shell, lambda memory: _in_other_projects(memory, missing, which))]:
        raise click.UsageError(
            f"Another project of this database has memory {', '.join(elsewhere[:10])}; run the command in that project."
        )
    raise click.UsageError(
        f"There is no memory {', '.join(map(str, missing[:10]))} here. `beaver memory list` shows the ids; --user ID"
        " selects the memories of a user."
    )


def _got(memory: LocalMemory, ids: Sequence[int], which: OwnerOptions) -> MemoriesReport:
    return memory.operations.get(GetRequest(ids=ids, visible=OwnerOptions(user=which.user).filters(memory)))


def _in_other_projects(memory: LocalMemory, ids: Sequence[int], which: OwnerOptions) -> Sequence[Memory]:
    here = OwnerOptions(user=which.user)
    seen, all_ = (
        memory.operations.get(GetRequest(ids=ids, visible=attrs.evolve(each, lapsed=True))).memories
        for each in (here.filters(memory), here.in_all_projects(memory))
    )
    return [each for each in all_ if each not in seen]


def _left_out(memory: LocalMemory, which: OwnerOptions) -> str:
    """Return sentences about the users and projects whose memories this command leaves out."""
    request = InspectionRequest(owners=(), every_owner=True, embeddings=False, figures=False)
    users = len({*memory.operations.inspect(request).owners} - {*which.sight(memory).owners})
    were = "was" if users == 1 else "were"
    others = f" {counted(users, 'user')} with memories {were} left out: --user ID shows them." if users else ""
    here = attrs.evolve(which, narrowed={})
    seen, all_ = (_has_any(memory, each) for each in (here.filters(memory), here.in_all_projects(memory)))
    return others + (" " + OTHER_PROJECTS if all_ and not seen else "")


def _has_any(memory: LocalMemory, visible: Filters) -> bool:
    return bool(memory.operations.list(ListRequest(visible=visible, limit=1)).memories)


def _nothing(text: str, which: OwnerOptions, left_out: str) -> str:
    return ("No memory matches the options." if which.narrowed else text) + left_out


def _changes(changes: Sequence[Change]) -> list[dict[str, Any]]:
    return [
        {"event": each.event, "at": plain(each.at), "old": plain(each.old), "new": plain(each.new)} for each in changes
    ]
