"""`reindex`, `stats` and `check`: the commands that maintain the store and its indexes."""

import asyncio
import os
from functools import partial
from typing import Any

import click

from beaver_hooks_local.cli.options import WORD, OwnerOptions, debug_option, json_option
from beaver_hooks_local.cli.output import counted, plain, say, say_json
from beaver_hooks_local.cli.plugin_calls import NAME, ask, call
from beaver_hooks_local.cli.progress import Bar
from beaver_hooks_local.memory import LocalMemory
from beaver_hooks_local.plugin import Local
from beaver_hostspecs import PluginError, Shell
from beaver_memory.embedding.factory import make_embedder
from beaver_memory.embedding.protocol import Identity
from beaver_memory.runtime.reports import CaptureDay
from beaver_memory.runtime.requests import InspectionRequest, RecoverRequest
from beaver_memory.runtime.troubles import EMBEDDER, EMBEDDING, UPKEEP

PAUSE = 0.2
"""Seconds between two checks of the number of embedded memories."""

EMBEDDING_NOT = (EMBEDDER, EMBEDDING, UPKEEP)
"""The troubles that stop embedding."""

PROBLEM = 1
"""The exit code if the check finds a problem."""


@click.command()
@json_option
@debug_option
@click.pass_obj
def reindex(shell: Shell, *, as_json: bool) -> None:
    """Compute missing embeddings, and rebuild the indexes.

    This is never required: missing and stale parts are found and rebuilt automatically. It saves the next conversations
    the work of a long embedding.
    """
    bar = Bar()

    async def work(plugin: Local) -> tuple[int, int]:
        try:
            embedded = await _embedded(plugin, bar)
            return embedded, await plugin.serve(partial(_indexed, bar=bar))
        finally:
            bar.end()

    embedded, indexed = call(shell, work)
    if as_json:
        say_json({"embedded": embedded, "indexed": indexed})
    else:
        say(f"Embedded {counted(embedded, 'memory')}, and indexed {counted(indexed, 'memory')}.")


@click.command()
@click.option("--user", metavar="ID", type=WORD, help="The user whose captures of today are counted.")
@json_option
@debug_option
@click.pass_obj
def stats(shell: Shell, *, user: str | None, as_json: bool) -> None:
    """Show statistics of the memories and their embeddings, and what capture has taken today (UTC) of a user."""
    numbers = ask(shell, partial(_numbers, OwnerOptions(user=user)))
    if as_json:
        say_json(numbers)
    else:
        say("\n".join(f"{name.replace('_', ' ')}: {_told(value)}" for name, value in numbers.items()))


@click.command()
@json_option
@debug_option
@click.pass_context
def check(ctx: click.Context, *, as_json: bool) -> None:
    """Examine the database; the exit code is 1 if there is a problem.

    The whole database is read, which takes a while if it is large.
    """
    request = InspectionRequest(owners=(), embeddings=False, figures=False, check=True)
    problems = ask(ctx.obj, lambda memory: memory.operations.inspect(request)).problems or ()
    if as_json:
        say_json({"ok": not problems, "problems": problems})
    else:
        say("\n".join(problems) or "The database is intact.")
    if problems:
        ctx.exit(PROBLEM)


async def _embedded(plugin: Local, bar: Bar) -> int:
    """Wait until the plugin has embedded everything; return the number of memories.

    Raises:
        PluginError: the embedder fails.
    """
    identity = _identity(plugin)
    if identity is None:
        return 0
    begun = left = await _pending(plugin)
    while left:
        if troubles := [each for each in plugin.memory.troubles.now if each.startswith(EMBEDDING_NOT)]:
            raise PluginError(
                f"Some memories are not embedded ({', '.join(troubles)}); `beaver memory embedder check` and the"
                " settings of"
                " memory.local.embedding say more.",
                plugin=NAME,
            )
        bar(max(0, begun - left), begun, "embedding")
        await asyncio.sleep(PAUSE)
        left = await _pending(plugin)
    return begun


async def _pending(plugin: Local) -> int:
    # `wrote=True` wakes the upkeep, which then also embeds memories that other processes have added.
    request = InspectionRequest(owners=(), figures=False)
    return (await plugin.serve(lambda memory: memory.operations.inspect(request), wrote=True)).to_be_embedded or 0


def _identity(plugin: Local) -> Identity | None:
    """Return the identity of the configured embedder, or `None` without one.

    Raises:
        EmbeddingError: the embedder is unavailable.
    """
    settings, setup = plugin.settings.embedding, plugin.setup
    embedder = make_embedder(settings, state_folder=setup.person_folder, environment=os.environ)
    if embedder is None:
        return None
    embedder.close()
    return embedder.identity


def _indexed(memory: LocalMemory, bar: Bar) -> int:
    request = RecoverRequest(embed=False, reindex=True)
    return memory.operations.recover(request, lambda done, total: bar(done, total, "indexing")).reindexed


def _numbers(which: OwnerOptions, memory: LocalMemory) -> dict[str, Any]:
    found = memory.operations.inspect(InspectionRequest(owners=(), capture_of=which.here(memory).owner))
    return {
        **{name: plain(value) for name, value in found.store.items()},
        "embedder": found.embedder,
        "to_be_embedded": found.to_be_embedded or 0,
        **_captured(found.capture),
        "troubles": list(found.troubles),
    }


def _captured(day: CaptureDay | None) -> dict[str, Any]:
    if day is None:
        return {}
    names = {"captured_today": "memories", "model_calls_today": "calls", "model_tokens_today": "tokens"}
    return {told: {"spent": getattr(day.spent, name), "most": getattr(day.most, name)} for told, name in names.items()}


def _told(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_told(each)}" for name, each in value.items()) or "none"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return f"{value:,}" if isinstance(value, int) else str(value or "none")
