"""`SyncHost`: the host for callers without an event loop."""

import atexit
import contextlib
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

import attrs

from beaver_hooks.audit.trail import Trail
from beaver_hooks.host import Host
from beaver_hooks.loop_thread import NOT_OPEN, LoopThread
from beaver_hooks.receipts.health import Health
from beaver_hooks.receipts.receipts import Receipt
from beaver_hooks.turns.compactions import CompactionFields, CompactionReport
from beaver_hooks.turns.context import PluginHint, Recall, ReferenceMessage
from beaver_hooks.turns.fields import ToolFields, TurnFields
from beaver_hooks.turns.open_turn import OpenTurn
from beaver_hostspecs import (
    Answer,
    Caller,
    Command,
    CommandContext,
    DropReason,
    HostError,
    HostMisused,
    HostNotOpen,
    PluginInfo,
    Tool,
    Turn,
)

T = TypeVar("T")


class SyncHost:
    """A `Host` on an event loop in a thread of its own.

    Enter it with `with`; leaving closes the host and its thread. It may be used from several threads. It takes the
    arguments of `Host`, or a host that is not open yet: `SyncHost(Host.from_config())`.

    An open host is closed when the interpreter ends. By then no new thread can start: a hook that needs one fails,
    and its health says so.
    """

    def __init__(self, host: Host | Mapping[str, object] | None = None, **options: Any) -> None:
        if isinstance(host, Host) and options:
            raise HostMisused(f"a `Host` that is given has its options already; give it these: {', '.join(options)}")
        self._host = host if isinstance(host, Host) else Host({} if host is None else host, **options)
        self._thread: LoopThread | None = None
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def open(self) -> None:
        """Start the thread and open the host in it."""
        if self._thread is not None:
            self._thread.check_process()
        with self._lock:
            if self._thread is not None:
                raise HostNotOpen("this host is open already; close it before you open it again")
            self._thread = LoopThread()
        try:
            self.call(self._host.open)
        except BaseException:
            self._take().end(_nothing)
            raise
        # A host left open, in a notebook or at the end of a script, has learned things that are not yet stored.
        atexit.register(self._close_at_exit)

    def close(self) -> None:
        """Close the host, then its thread. Other threads that still wait for it get a `CancelledError`.

        If several threads close it, one does, and the others get `HostNotOpen`. An interrupt cuts the draining short:
        the remaining calls are counted and audited, the plugins are stopped, the trail is written.
        """
        thread = self._take()
        atexit.unregister(self._close_at_exit)
        thread.end(self._host.close)

    def call(self, function: Callable[..., Coroutine[Any, Any, T]], *arguments: Any, **keywords: Any) -> T:
        """Run a coroutine function of the host in its loop, in the caller's context; return its result.

        An interrupt of the caller cancels the coroutine.
        """
        return self._running().call(function, *arguments, **keywords)

    async def reach(self, function: Callable[..., Coroutine[Any, Any, T]], *arguments: Any, **keywords: Any) -> T:
        """Run a coroutine function as `call` does, while the caller's own event loop goes on.

        Unlike `call` it can be used from this host's own loop.
        """
        thread = self._thread
        if thread is None:
            raise HostNotOpen(NOT_OPEN)
        return await thread.reach(function, *arguments, **keywords)

    @property
    def within(self) -> Host:
        """The host itself, for the coroutine functions passed to `call` and `reach`."""
        return self._host

    def open_turn(
        self,
        prompt: str,
        *,
        session: str,
        supersedes: str | None = None,
        **fields: Unpack[TurnFields],
    ) -> "SyncTurn":
        """Open a turn, as `Host.open_turn` does."""
        opened = self.call(self._host.open_turn, prompt, session=session, supersedes=supersedes, **fields)
        return SyncTurn(opened=opened, host=self)

    @contextlib.contextmanager
    def turn(
        self,
        prompt: str,
        *,
        session: str,
        supersedes: str | None = None,
        **fields: Unpack[TurnFields],
    ) -> Iterator["SyncTurn"]:
        """Open a turn for a `with` block: it is dropped on any exception, and if the block did not commit it."""
        opened = self.open_turn(prompt, session=session, supersedes=supersedes, **fields)
        try:
            yield opened
        except BaseException as error:
            reason = DropReason.CANCELLED if isinstance(error, GeneratorExit) else DropReason.FAILED
            with contextlib.suppress(HostError):  # a closed host has dropped the turn already
                opened.drop(reason)
            raise
        else:
            opened.drop(DropReason.ABANDONED)

    def find_turn(self, turn_id: str) -> "SyncTurn":
        """Return an open turn, or raise `TurnClosed` or `UnknownTurn`."""
        return SyncTurn(opened=self._ask(self._host.find_turn, turn_id), host=self)

    def tool_result(self, turn_id: str, **fields: Unpack[ToolFields]) -> bool:
        """Tell the plugins about a tool call of a turn by its id; `False` if the turn was closed before."""
        return self.call(self._host.tool_result, turn_id, **fields)

    def commit(self, turn_id: str, answer: str | Answer) -> bool:
        """Close a turn by its id with its answer; `False` if it was closed before."""
        return self.call(self._host.commit, turn_id, answer)

    def drop(self, turn_id: str, reason: DropReason | str = DropReason.FAILED) -> bool:
        """Close a turn by its id without an answer; `False` if it was closed before."""
        return self.call(self._host.drop, turn_id, reason)

    def before_compaction(self, *, session: str, **fields: Unpack[CompactionFields]) -> CompactionReport:
        """Announce that the context of a session is about to be shortened, as `Host.before_compaction` does."""
        return self.call(self._host.before_compaction, session=session, **fields)

    def drain(self, seconds: float | None = None) -> int:
        """Wait until the background work is done, at most `seconds`; return how many calls are left."""
        return self.call(self._host.drain, seconds)

    def register(self, name: str, plugin: object, *, fail_closed: bool = False) -> None:
        """Register, configure and start a plugin."""
        self.call(self._host.register, name, plugin, fail_closed=fail_closed)

    def unregister(self, name: str, *, drain: bool = False) -> None:
        """Unregister a plugin, effective at once."""
        self.call(self._host.unregister, name, drain=drain)

    def plugin(self, name: str) -> object:
        """Return a registered plugin object, or raise `UnknownPlugin`."""
        return self._ask(self._host.plugin, name)

    @property
    def plugins(self) -> dict[str, PluginInfo]:
        """The registered plugins, in order, with their descriptions."""
        return self._ask(lambda: self._host.plugins)

    @property
    def fail_closed(self) -> frozenset[str]:
        """The registered plugins whose failure in `before_prompt` stops the turn."""
        return self._ask(lambda: self._host.fail_closed)

    @property
    def tools(self) -> dict[str, tuple[Tool, ...]]:
        """The tools that each plugin offers to the model; `run_tool` runs them."""
        return self._ask(lambda: self._host.tools)

    @property
    def commands(self) -> dict[str, tuple[Command, ...]]:
        """The commands that each plugin offers to the user; `run_command` runs them."""
        return self._ask(lambda: self._host.commands)

    def offered_tools(self, caller: Caller) -> dict[str, tuple[Tool, ...]]:
        """Return the tools that a caller may use, by plugin."""
        return self._ask(self._host.offered_tools, caller)

    def offered_commands(self, caller: Caller) -> dict[str, tuple[Command, ...]]:
        """Return the commands that a caller may use, by plugin."""
        return self._ask(self._host.offered_commands, caller)

    def switch_memory(self, *, on: bool, session: str | None = None, user: str | None = None) -> None:
        """Switch memory on or off, as `Host.switch_memory` does."""
        self.call(self._host.switch_memory, on=on, session=session, user=user)

    def is_memory_off(self, *, session: str | None = None, user: str | None = None) -> bool:
        """Whether memory is off in a session of a user."""
        return self._ask(partial(self._host.is_memory_off, session=session, user=user))

    def run_tool(self, turn_id: str, name: str, arguments: Mapping[str, Any]) -> object:
        """Run a plugin's tool for the model, within an open turn, as `Host.run_tool` does."""
        return self.call(self._host.run_tool, turn_id, name, arguments)

    def use_tool(
        self, name: str, arguments: Mapping[str, Any], *, session: str, **fields: Unpack[TurnFields]
    ) -> object:
        """Run a plugin's tool outside of any turn, as `Host.use_tool` does."""
        return self.call(self._host.use_tool, name, arguments, session=session, **fields)

    def run_command(self, plugin: str, command: str, words: Iterable[str], context: CommandContext) -> str:
        """Run a plugin's command for the user, as `Host.run_command` does."""
        return self.call(self._host.run_command, plugin, command, words, context)

    def record(self, event: str, *, plugin: str | None = None, loudly: bool = False, **facts: object) -> None:
        """Append an audit event of the application, as `Host.record` does."""
        self._ask(partial(self._host.record, event, plugin=plugin, loudly=loudly, **facts))

    def health(self) -> dict[str, Health]:
        """Return the health of every plugin."""
        return self._ask(self._host.health)

    def notices(self) -> dict[str, tuple[str, ...]]:
        """Return the plugins' notices for the person who runs this host."""
        return self._ask(self._host.notices)

    def receipt(self, turn_id: str) -> Mapping[str, Any] | None:
        """Return the stored receipt of a closed turn, or `None`."""
        return self.call(self._host.receipt, turn_id)

    @property
    def trail(self) -> Trail:
        """The audit trail: `tail`, `verify`, `flush`. Raises `AuditUnavailable` if it could not be opened."""
        self._running()
        return self._host.trail

    def _ask(self, function: Callable[..., T], *arguments: Any) -> T:
        async def ask() -> T:
            return function(*arguments)

        return self.call(ask)

    def _running(self) -> LoopThread:
        thread = self._thread
        if thread is None:
            raise HostNotOpen(NOT_OPEN)
        thread.check()
        return thread

    def _take(self) -> LoopThread:
        """Remove the thread from this host and return it, so that only the caller ends it."""
        self._running()
        with self._lock:
            thread = self._running()
            self._thread = None
        return thread

    def _close_at_exit(self) -> None:
        with contextlib.suppress(HostError):  # another thread closes it, or this is a forked child
            self.close()


@attrs.define(kw_only=True, eq=False)
class SyncTurn:
    """An open turn of a `SyncHost`."""

    opened: OpenTurn
    _host: SyncHost

    @property
    def turn(self) -> Turn:
        """The turn, as every plugin sees it."""
        return self.opened.turn

    @property
    def id(self) -> str:
        """The turn's id."""
        return self.opened.id

    @property
    def prompt(self) -> str:
        """The user's prompt."""
        return self.opened.prompt

    @property
    def recall(self) -> Recall:
        """The context that memory adds to the turn."""
        return self.opened.recall

    @property
    def references(self) -> tuple[ReferenceMessage, ...]:
        """One ephemeral message per plugin that recalled something."""
        return self.opened.references

    @property
    def hints(self) -> tuple[PluginHint, ...]:
        """Experience with the host's own tools."""
        return self.opened.hints

    @property
    def receipt(self) -> Receipt:
        """The turn's current receipt."""
        return self.opened.receipt

    def system_prompt(self, base: str = "") -> str:
        """Return the system prompt: `base`, the plugins' rules, the trusted blocks."""
        return self.opened.system_prompt(base)

    def tool_result(self, **fields: Unpack[ToolFields]) -> bool:
        """Tell the plugins about a tool call, as `OpenTurn.tool_result` does."""
        return self._host.call(self.opened.tool_result, **fields)

    def commit(self, answer: str | Answer, **fields: Any) -> bool:
        """Close the turn with its final answer, as `OpenTurn.commit` does."""
        return self._host.call(self.opened.commit, answer, **fields)

    def drop(self, reason: DropReason | str = DropReason.FAILED) -> bool:
        """Close the turn without an answer."""
        return self._host.call(self.opened.drop, reason)


async def _nothing() -> None:
    """Do nothing, as no host is open."""
