"""For hosts that call something before the prompt and something after the answer, and have no event loop.

    memory = BeforeAfter(host, trust="full")       # an open `SyncHost`; `public` unless you say so
    given = memory.before("What did we decide?", session="s1")
    ... given.system, given.references ...
    memory.after(given.turn_id, "To wait.")

Call `memory.before_compaction(session="s1")` before you shorten the history of a session.

The callables accept and ignore further keywords of a framework. `before` raises only errors of fail-closed plugins; the
other callables raise none.
"""

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any, Unpack

import attrs

from beaver_hooks.adapters.core import Adapter, AdapterTurn, Defaults
from beaver_hooks.sync import SyncHost
from beaver_hostspecs import DropReason, HostMisused, UnknownTurn
from beaver_hostspecs.conformance.cards import Card

CARD = Card(
    host="before and after",
    sees_errors=False,
    sees_cancellation=False,
    sees_blocks=False,
    streaming=False,
    announces_compaction=True,
    notes={
        "reference_placement": "The caller places them; `messages` puts them before the history.",
        "sees_errors": "The caller may call `failed`; else the turn is dropped when the session's next one begins.",
        "sees_cancellation": "As for errors.",
        "sees_blocks": "A caller with guardrails calls `failed` in place of `after`.",
        "streaming": "`after` takes the whole answer.",
        "announces_compaction": "The caller calls `before_compaction`.",
    },
)

MOST_OPEN = 1_000
"""Turns that are kept open at once. The oldest is dropped, for hosts that never report the end of a turn."""


@attrs.frozen(kw_only=True)
class Given:
    """The recall of a turn.

    Attributes:
        turn_id: names the turn in `tool`, `after` and `failed`.
        system: rules and trusted blocks, for the end of the system prompt; may be empty.
        references: one text per plugin that recalled something: a message each, before the history, never stored.
    """

    turn_id: str
    system: str = attrs.field(repr=False)
    references: tuple[str, ...] = attrs.field(repr=False)

    @property
    def text(self) -> str:
        """All texts as one, for a host that has one place for them."""
        return "\n\n".join(part for part in (self.system, *self.references) if part)

    def messages(
        self, prompt: str, history: Iterable[Mapping[str, str]] = (), *, system: str = ""
    ) -> list[dict[str, str]]:
        """Return the messages of a chat request in the right order."""
        whole = "\n\n".join(part for part in (system, self.system) if part)
        return [
            *([{"role": "system", "content": whole}] if whole else []),
            *({"role": "user", "content": text} for text in self.references),
            *map(dict, history),
            {"role": "user", "content": prompt},
        ]


class BeforeAfter:
    """Two callables, and more for hosts that know of tool calls, failures and compactions. Thread-safe.

    Args:
        host: an open `SyncHost`.
        **defaults: fields of every turn.
    """

    def __init__(self, host: SyncHost, **defaults: Unpack[Defaults]) -> None:
        if not isinstance(host, SyncHost):
            raise HostMisused("BeforeAfter takes an open SyncHost: `with SyncHost(Host.from_config()) as host:`")
        self._adapter = Adapter(host, **defaults)
        self._open: OrderedDict[str, AdapterTurn] = OrderedDict()
        self._sessions: dict[tuple[str, str | None], str] = {}
        self._lock = threading.Lock()

    def before(
        self,
        prompt: object,
        *,
        session: object = None,
        user: object = None,
        history: Iterable[object] = (),
        **_: Any,
    ) -> Given:
        """Open a turn. An open turn of the same session and user is dropped.

        Args:
            prompt: the user's prompt: a text, or a list of parts as in chat requests.
            session: the running session.
            user: the user.
            history: the earlier messages: mappings with `role` and `content`.
            **_: further keywords of a framework.

        Raises:
            Exception: the error of a fail-closed plugin.
            HostError: the host is not open.
        """
        said = [(str(each.get("role")), _text(each.get("content"))) for each in history if isinstance(each, Mapping)]
        turn = self._adapter.open_now(_text(prompt), session=session, user=user, history=said)
        for left in self._enter(turn):
            left.drop_now(DropReason.ABANDONED)
        return Given(turn_id=turn.id, system=turn.system_prompt(), references=turn.references)

    def tool(
        self,
        turn_id: str,
        tool: str,
        *,
        output: object = None,
        error: BaseException | str | None = None,
        arguments: Mapping[str, Any] | None = None,
        call_id: str | None = None,
        **_: Any,
    ) -> None:
        """Report a tool call; one of a closed turn is ignored."""
        if (turn := self._open.get(turn_id)) is not None:
            turn.tool_result_now(tool, output=output, error=error, arguments=arguments, call_id=call_id)

    def after(self, turn_id: str, answer: object, **_: Any) -> None:
        """Close the turn with the user's answer; closing it again changes nothing."""
        if (turn := self._leave(turn_id)) is not None:
            turn.commit_now(_text(answer))

    def failed(self, turn_id: str, reason: DropReason | BaseException = DropReason.FAILED, **_: Any) -> None:
        """Close the turn without an answer."""
        if (turn := self._leave(turn_id)) is not None:
            turn.drop_now(reason)

    def before_compaction(self, *, session: object = None, user: object = None, **_: Any) -> bool:
        """Announce that the history of a session is about to be shortened, and wait for the plugins.

        Returns:
            Whether every plugin with something to store has confirmed that it is durable.
        """
        return self._adapter.before_compaction_now(session=session, user=user)

    def run_tool(self, turn_id: str, name: str, arguments: Mapping[str, Any] | str) -> str:
        """Run a plugin's tool for the model; return a failure as text, too.

        Raises:
            UnknownTurn: the turn is closed, or does not belong to this object.
        """
        if (turn := self._open.get(turn_id)) is None:
            raise UnknownTurn("no turn with this id is open; run tools between `before` and `after`")
        return turn.run_tool_now(name, arguments)

    @property
    def tools(self) -> tuple[dict[str, Any], ...]:
        """The tools of the plugins: name, description, parameters."""
        return tuple(attrs.asdict(tool) for tool in self._adapter.tools)

    def _enter(self, turn: AdapterTurn) -> list[AdapterTurn]:
        """Keep a turn; return the turns to drop in its favour."""
        session = _session_of(turn)
        with self._lock:
            left = [self._open.pop(self._sessions.get(session, ""), None)]
            self._open[turn.id] = turn
            self._sessions[session] = turn.id
            if len(self._open) > MOST_OPEN:
                left.append(self._forget(next(iter(self._open))))
        return [each for each in left if each is not None]

    def _leave(self, turn_id: str) -> AdapterTurn | None:
        with self._lock:
            return self._forget(turn_id)

    def _forget(self, turn_id: str) -> AdapterTurn | None:
        turn = self._open.pop(turn_id, None)
        if turn is not None and self._sessions.get(session := _session_of(turn)) == turn_id:
            del self._sessions[session]
        return turn


def _session_of(turn: AdapterTurn) -> tuple[str, str | None]:
    """Return the session with its user: several users may name their sessions alike."""
    return turn.opened.turn.session, turn.opened.turn.user


def _text(content: object) -> str:
    """Return a message's text: the text itself, or the text parts of a list."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(str(part["text"]) for part in parts if isinstance(part, Mapping) and part.get("text"))
