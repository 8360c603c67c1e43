"""What each command of `beaver` shows of memory to the person at the terminal, who is its owner.

Commands that run turns, or serve others, are rows of the matrix. Every other one is called here, and what it prints is
looked through for the words of each part; with `--user` it shows that user's memories. A command without a row fails a
test.
"""

from collections.abc import Iterator

import attrs
import click
from adapters.trust_world import OWNER, SECOND

from beaver_hooks.cli.app import beaver

IN_THE_MATRIX = {"chat", "hooks install", "mcp", "run"}
"""Run turns at a trust, or serve those who do: `hooks install` the adapter `claude_code`, `mcp` the adapter `mcp_server`."""

ALL = "private shared social"


@attrs.frozen
class Row:
    """One command.

    Attributes:
        words: what stands behind it.
        owner: what it shows, with `--user` for the owner where it has that option.
        second: what it shows for the second user; `None` where it has no such option.
    """

    words: tuple[str, ...] = ()
    owner: str = "-"
    second: str | None = None


COMMANDS = {
    "audit tail": Row(),
    "audit verify": Row(),
    "backup create": Row(),
    "backup list": Row(),
    "backup verify": Row(("none",)),
    "check": Row(),
    "completion": Row(("bash",)),
    "config get": Row(),
    "config set": Row(("host.background", "true")),
    "config unset": Row(("plugins.disabled",)),
    "curated edit": Row(("user",), "profile", "profile"),
    "doctor": Row(),
    "gateway ping": Row(),
    "gateway search": Row(("harbour",), "gateway"),
    "gateway status": Row(),
    "hooks status": Row(),
    "hooks trust": Row(("claude-code",)),
    "hooks uninstall": Row(("claude-code",)),
    "init": Row(),
    "local add": Row(("The quay is new.",), "-", "-"),
    "local capabilities": Row(),
    "local capture": Row(("--dry-run", "The quay is new."), "-", "-"),
    "local check": Row(),
    "local correct": Row(("1", "The quay is old."), "-", "-"),
    "local embedder bench": Row(),
    "local embedder check": Row(),
    "local embedder install": Row(),
    "local embedder list": Row(),
    "local embedder remove": Row(),
    "local examine": Row(),
    "local explain": Row(("harbour",), ALL, "second's"),
    "local export": Row((), ALL, "second's"),
    "local forget": Row(("1", "--dry-run"), "private", "-"),
    "local history": Row(("1",), "-", "-"),
    "local list": Row((), ALL, "second's"),
    "local migrate": Row(),
    "local people": Row((), "-", "-"),
    "local pin": Row(("1",), "private", "-"),
    "local project": Row(("harbour",), ALL, "second's"),
    "local queue": Row((), "-", "-"),
    "local reindex": Row(),
    "local review": Row((), "-", "-"),
    "local search": Row(("harbour",), ALL, "second's"),
    "local sessions": Row((), "-", "-"),
    "local show": Row(("1",), "private", "-"),
    "local stats": Row((), "-", "-"),
    "local timeline": Row(("1",), ALL, "-"),
    "local undo": Row((), "-", "-"),
    "local unpin": Row(("1",), "private", "-"),
    "memory": Row(),
    "memory erase": Row(("--subject", "none", "--dry-run")),
    "memory export": Row(("--subject", "none", "--output", "none.zip")),
    "memory off": Row((), "-", "-"),
    "memory on": Row((), "-", "-"),
    "plugins": Row(),
    "plugins disable": Row(("local",)),
    "plugins enable": Row(("tally",)),
    "restore": Row(("none",)),
    "sessions delete": Row(("none", "--yes")),
    "sessions export": Row(("none",)),
    "sessions forget": Row(("harbour", "--dry-run"), "-", "-"),
    "sessions import": Row(("none",)),
    "sessions list": Row((), "-", "-"),
    "sessions rename": Row(("none", "title")),
    "sessions search": Row(("harbour",), "-", "-"),
    "sessions show": Row(("none",)),
    "trust": Row(),
    "why": Row(),
}


OFFERED = {
    ("curated", "approve"): ("full", "-"),
    ("curated", "forget-history"): ("full", "-"),
    ("curated", "history"): ("inner", "notes profile"),
    ("curated", "pending"): ("inner", "-"),
    ("curated", "reject"): ("full", "-"),
    ("curated", "show"): ("inner", "notes profile"),
    ("curated", "undo"): ("full", "-"),
    ("local", "active"): ("familiar", "-"),
    ("local", "correct"): ("familiar", "-"),
    ("local", "forget"): ("familiar", "-"),
    ("local", "list"): ("familiar", "by store"),
    ("local", "overview"): ("familiar", "by store"),
    ("local", "pending"): ("familiar", "-"),
    ("local", "pin"): ("familiar", "-"),
    ("local", "recent"): ("familiar", "by store"),
    ("local", "search"): ("familiar", "by store"),
    ("local", "status"): ("familiar", "-"),
    ("local", "undo"): ("familiar", "-"),
    ("local", "unpin"): ("familiar", "-"),
    ("local", "why"): ("familiar", "-"),
}
"""What plugins offer in conversations: the least trust that may use it, and what it shows the owner then."""

TOOLS = {
    "memory": "full",
    "memory_get": "familiar",
    "memory_history": "familiar",
    "memory_people": "familiar",
    "memory_search": "familiar",
    "memory_sessions": "familiar",
    "memory_timeline": "familiar",
    "memory_write": "familiar",
}
"""The tools that plugins offer, with the least trust that may use each."""


def found_commands(command: click.Command = beaver, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    """Yield every command of the tree that does something, by its words."""
    group = command if isinstance(command, click.Group) else None
    if group is None or group.invoke_without_command:
        yield " ".join(path), command
    if group is not None:
        context = click.Context(group)
        for name in group.list_commands(context):
            found = group.get_command(context, name)
            assert found is not None
            yield from found_commands(found, (*path, name))


def user_of(name: str) -> str:
    """Return the user id of a column."""
    return {"owner": OWNER, "second": SECOND}[name]
