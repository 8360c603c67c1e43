"""`beaver memory local`: show, add and forget memories, maintain the indexes, install embedding models.

The host runs a command of this group also as `beaver memory COMMAND`, as long as no other plugin has one of that name.
Each command opens a host with the plugin in service, calls the plugin, and closes the host.
"""

import click

from beaver_hooks_local.cli.add import add
from beaver_hooks_local.cli.capture import capture
from beaver_hooks_local.cli.change import pin, unpin
from beaver_hooks_local.cli.corrections import correct, review, undo
from beaver_hooks_local.cli.embedders import embedder
from beaver_hooks_local.cli.examine import examine
from beaver_hooks_local.cli.explain import explain
from beaver_hooks_local.cli.export import export
from beaver_hooks_local.cli.forget import forget
from beaver_hooks_local.cli.migrate import migrate
from beaver_hooks_local.cli.operation_commands import operation_commands
from beaver_hooks_local.cli.queue import queue
from beaver_hooks_local.cli.search import list_, search, show
from beaver_hooks_local.cli.upkeep import check, reindex, stats

__all__ = ["group"]


@click.group(name="local")
def group() -> None:
    """Commands of the local memory.

    Times are in UTC. Without --user a command is about the memories without a user, which every user sees. For another
    configuration write: beaver --config FILE memory local ...
    """


for each in (
    list_,
    search,
    show,
    add,
    capture,
    correct,
    undo,
    review,
    queue,
    pin,
    unpin,
    forget,
    explain,
    reindex,
    stats,
    check,
    examine,
    export,
    migrate,
    embedder,
    *operation_commands(),
):
    group.add_command(each)
