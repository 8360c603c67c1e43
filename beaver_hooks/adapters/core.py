"""The core of all adapters: a turn is opened once, its recall replayed at each model step, and it is closed once.

An adapter contains only the parts that its framework forces: its callbacks, and its form of messages and tools. It
reads `AdapterTurn.references` and `system_prompt()` any number of times, and reports the end of the turn. If its
framework releases the turn without a callback (a consumer breaks off, a task is cancelled), the turn is dropped when
the last reference to its `AdapterTurn` is gone; so keep it where the framework keeps the state of one run, and nowhere
else.

Only errors of fail-closed plugins reach the framework, and none after a turn is open: the user's answer is on its way,
so an error in notifying the plugins is logged.
"""

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterable, Mapping
from concurrent.futures import CancelledError as Forgotten
from datetime import UTC, datetime
from typing import Any, TypedDict, TypeVar, Unpack
from uuid import UUID

import attrs

from beaver_hooks.adapters.adapter_turn import AdapterTurn
from beaver_hooks.config.paths import meant_or_known
from beaver_hooks.host import Host
from beaver_hooks.log import make_log
from beaver_hooks.sync import SyncHost
from beaver_hooks.text import presentable
from beaver_hooks.tools.box import ToolBox, is_being_cancelled
from beaver_hooks.tools.outcomes import ToolCall, render_error
from beaver_hooks.turns.fields import new_turn_id
from beaver_hooks.turns.open_turn import OpenTurn
from beaver_hostspecs import (
    BeaverError,
    Caller,
    CommandContext,
    HostError,
    HostMisused,
    HostNotOpen,
    Message,
    Scope,
    Trust,
    Turn,
)
from beaver_hostspecs.naming import type_name

T = TypeVar("T")

IDS = str | int | UUID
CLOSED = "the host is closed; close it only when the agents that use it are done"

__all__ = ["Adapter", "AdapterTurn", "Defaults", "OfferedTool", "user_in"]


class Defaults(TypedDict, total=False):
    """The fields of every turn that the framework does not know, given once to the adapter.

    session: the session if the framework names none; else each run is a session of its own.
    user: the user if the framework names none.
    trust: the trust in the surroundings; `public` by default.
    scope: where the agent works.
    budget: how many tokens of the context memory may spend.
    """

    session: str | None
    user: str | None
    trust: Trust | str
    scope: Scope
    budget: int | None


@attrs.frozen(kw_only=True)
class OfferedTool:
    """A plugin's tool in the form that frameworks take."""

    name: str
    description: str
    parameters: dict[str, Any]


class Adapter:
    """Reaches a host from any thread and event loop of a framework.

    Args:
        host: an open `Host`, for a framework that stays in its event loop; or an open `SyncHost`, which works from
            every thread and every loop.
        **defaults: fields of every turn.

    Raises:
        HostMisused: an argument is invalid.
    """

    def __init__(self, host: Host | SyncHost, **defaults: Unpack[Defaults]) -> None:
        if not isinstance(host, Host | SyncHost):
            raise HostMisused("an adapter takes a Host or a SyncHost; make one with Host.from_config()")
        self._host = host
        self._defaults = _checked(defaults)
        self._inner = host.within if isinstance(host, SyncHost) else host
        self._box = ToolBox(self._inner)
        self._log = make_log()

    @property
    def tools(self) -> tuple[OfferedTool, ...]:
        """The tools that the adapter's own `user` and `trust` allow, for frameworks that take tools before a run.

        The host must be open. A run with fewer permissions is refused when it calls a tool.
        """
        caller = CommandContext(**{name: each for name, each in self._defaults.items() if name != "budget"})
        return self._offered(caller) if isinstance(self._host, Host) else self.now(self._offered_soon, caller)

    async def offered_tools(self, turn: AdapterTurn) -> tuple[OfferedTool, ...]:
        """Return the tools that a turn may use."""
        return await self.reach(self._offered_soon, turn.opened)

    async def open(
        self,
        prompt: str,
        *,
        session: object = None,
        user: object = None,
        history: Iterable[tuple[str, str]] = (),
        **more: Any,
    ) -> AdapterTurn:
        """Open a turn and ask every plugin once.

        Args:
            prompt: the user's prompt; empty if a run goes on without a new one.
            session: the framework's session, or the default one, or a new one: a text, a number or a UUID.
            user: the framework's user, or the default one; likewise.
            history: roles and texts of the earlier messages; only those of the user and the assistant are passed on.
            **more: further fields of the turn.

        Raises:
            Exception: the error of a fail-closed plugin, unchanged.
            HostError: the host is not open, or it belongs to another event loop: give the adapter a `SyncHost`.
        """
        return await self.reach(self._open, prompt, session, user, history, more)

    def open_now(self, prompt: str, **fields: Any) -> AdapterTurn:
        """Do as `open` does, for a framework without an event loop; needs a `SyncHost`."""
        return self.now(self.open, prompt, **fields)

    async def before_compaction(self, *, session: object = None, user: object = None) -> bool:
        """Announce that a session's context is about to be shortened; an error is logged.

        Args:
            session: the framework's session, or the default one.
            user: the framework's user, or the default one.

        Returns:
            Whether every plugin with something to store has confirmed that it is durable.
        """
        fields = {
            **{name: each for name, each in self._defaults.items() if name != "budget"},
            "session": _first(self._id("session", session), self._defaults.get("session")),
            "user": _first(self._id("user", user), self._defaults.get("user")),
        }
        try:
            return (await self.reach(self._inner.before_compaction, **fields)).complete
        except Exception as error:  # noqa: BLE001 - it is logged
            self._say("before_compaction", error)
            return False

    def before_compaction_now(self, **fields: Any) -> bool:
        """Do as `before_compaction` does, for a framework without an event loop; needs a `SyncHost`."""
        try:
            return self.now(self.before_compaction, **fields)
        except HostError as error:
            self._say("before_compaction", error)
            return False

    async def reach(self, function: Callable[..., Coroutine[Any, Any, T]], *arguments: Any, **keywords: Any) -> T:
        """Run a coroutine function in the host's loop, from any."""
        if isinstance(self._host, Host):
            return await function(*arguments, **keywords)
        try:
            return await self._host.reach(function, *arguments, **keywords)
        except asyncio.CancelledError:
            if is_being_cancelled():
                raise
            # A closed host cancels the calls that wait for it; the framework's task itself is not cancelled.
            raise HostNotOpen(CLOSED) from None

    def now(self, function: Callable[..., Coroutine[Any, Any, T]], *arguments: Any, **keywords: Any) -> T:
        """Run a coroutine function in the host's loop; wait for it without an event loop."""
        if isinstance(self._host, Host):
            raise HostMisused("a Host can be used only inside its event loop; give the adapter a SyncHost")
        try:
            return self._host.call(function, *arguments, **keywords)
        except Forgotten:
            raise HostNotOpen(CLOSED) from None

    async def quietly(self, what: str, function: Callable[..., Coroutine[Any, Any, object]], **keywords: Any) -> None:
        """Notify the host; log an error instead of raising it."""
        try:
            await self.reach(function, **keywords)
        except Exception as error:  # noqa: BLE001 - it is logged
            self._say(what, error)

    def quietly_now(self, what: str, function: Callable[..., Coroutine[Any, Any, object]], **keywords: Any) -> None:
        """Do as `quietly` does, for callers without an event loop."""
        try:
            self.now(function, **keywords)
        except Exception as error:  # noqa: BLE001 - it is logged
            self._say(what, error)

    async def run_tool(self, opened: OpenTurn, name: str, arguments: Mapping[str, Any] | str, call_id: str) -> str:
        """Run a plugin's tool within a turn; return the text for the model. A failure is a text with a mark."""
        written = arguments if isinstance(arguments, str) else json.dumps(arguments, default=str)
        call = ToolCall(id=call_id, name=name, arguments=written)
        try:
            return (await self.reach(self._box.run, call, opened)).text
        except HostError as error:
            return self.unreached(name, error)

    def unreached(self, name: str, error: HostError) -> str:
        """Return the text for the model about a tool whose host cannot be reached; log the reason."""
        self._say("run_tool", error)
        return render_error(name, "it is out of service")

    def limited(self, what: str, why: str, value: object) -> None:
        """Log that a value of the framework cannot be used, by its type; the turn goes on without it."""
        self._log.warning("adapter_limited", what=what, why=why, type=type_name(value))

    def _say(self, what: str, error: BaseException) -> None:
        # Other errors may quote messages.
        reason = str(error) if isinstance(error, BeaverError) else None
        self._log.warning("adapter_failed", what=what, error=type_name(error), reason=reason)

    def _id(self, what: str, value: object) -> str | None:
        """Return a framework's id as text; refuse other objects, whose text may contain an address that changes."""
        if value is None or isinstance(value, IDS):
            return None if value is None else str(value)
        self.limited(what, "it is not a str, a number or a UUID", value)
        return None

    async def _offered_soon(self, caller: OpenTurn | Caller) -> tuple[OfferedTool, ...]:
        return self._offered(caller)

    def _offered(self, caller: OpenTurn | Caller) -> tuple[OfferedTool, ...]:
        return tuple(OfferedTool(**schema) for schema in self._box.schemas(caller))

    async def _open(
        self,
        prompt: str,
        session: object,
        user: object,
        history: Iterable[tuple[str, str]],
        more: Mapping[str, Any],
    ) -> AdapterTurn:
        given = self._defaults
        turn_id = new_turn_id()
        fields: dict[str, Any] = {
            **given,
            "id": turn_id,
            "session": _first(self._id("session", session), given.get("session"), f"run-{turn_id}"),
            "user": _first(self._id("user", user), given.get("user")),
            "history": _messages(history),
            **more,
        }
        opened = await self._inner.open_turn(presentable(prompt), **fields)
        return AdapterTurn(adapter=self, opened=opened)


def user_in(*places: object) -> object:
    """Return the first `user_id` in objects of a framework: a mapping's key, or an attribute."""
    return _first(
        *(each.get("user_id") if isinstance(each, Mapping) else getattr(each, "user_id", None) for each in places)
    )


def _first(*ids: Any) -> Any:
    """Return the first id that is given. A blank id counts: the turn refuses it."""
    return next((each for each in ids if each is not None), None)


def _checked(defaults: Defaults) -> dict[str, Any]:
    """Return the defaults that are given. An invalid one raises now, instead of in the first turn."""
    given = {name: value for name, value in defaults.items() if value is not None}
    known = Defaults.__annotations__
    for name in given:
        if name not in known:
            raise HostMisused(f"an adapter has no option `{name}`{meant_or_known(name, known, 'options')}")
    fields: dict[str, Any] = {"session": "s", "id": "t", "prompt": "", "when": datetime.now(UTC), **given}
    try:
        Turn(**fields)
    except (TypeError, ValueError) as error:
        raise HostMisused(f"an option of the adapter is wrong: {error}") from None
    return given


def _messages(history: Iterable[tuple[str, str]]) -> tuple[Message, ...]:
    spoken = ((role, text) for role, text in history if role in {"user", "assistant"} and text.strip())
    return tuple(
        Message(role="user" if role == "user" else "assistant", text=presentable(text)) for role, text in spoken
    )
