"""The writer's next transaction: items from the queue, as text, kept until they are committed."""

import json
import threading
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from typing import TypeVar

import attrs
from attrs import field

from beaver_hooks.audit.chain import Fields
from beaver_hooks.audit.events import AuditEvent, stamp
from beaver_hostspecs.naming import type_name

# Built once: json.dumps builds an encoder per call for anything but its defaults. Sorted keys and pure ASCII
# encode the same value to the same bytes, and make lone surrogates and NUL plain escapes.
_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode

Answer = TypeVar("Answer")
Body = Mapping[str, object] | Callable[[], Mapping[str, object]]


@attrs.frozen(kw_only=True)
class ReceiptRow:
    """The receipt of a turn, not yet written to the database."""

    turn: str
    at: datetime
    body: Body = field(repr=False)


@attrs.frozen(kw_only=True)
class HealthRow:
    """The health of a plugin, not yet written to the database."""

    plugin: str
    at: datetime
    body: Mapping[str, object]


@attrs.define(kw_only=True, eq=False)
class Flush:
    """A caller's request to wait until every earlier item is durable.

    Attributes:
        done: set when the items are durable, or when the write failed.
        failure: the category of the failure, or `None`; read it once `done` is set.
    """

    done: threading.Event = field(factory=threading.Event)
    failure: str | None = None


@attrs.frozen(kw_only=True, eq=False)
class Stop:
    """The request that the writer write every earlier item and end."""


Item = AuditEvent | ReceiptRow | HealthRow | Flush | Stop


class Batch:
    """Rows that wait for their commit, and the flushes that wait for the rows; every row holds text only."""

    def __init__(self) -> None:
        self._given: dict[str, ReceiptRow] = {}
        self._receipts: dict[str, tuple[str, str, str]] = {}
        self._health: dict[str, tuple[str, str, str]] = {}
        self._waiting: list[Flush] = []
        self.events: list[Fields] = []
        self.stopped = False

    def __len__(self) -> int:
        """The number of entries lost if the batch is lost; health is not counted, as only the latest matters."""
        return len(self.events) + len(self._given) + len(self._receipts)

    @property
    def empty(self) -> bool:
        """Whether the batch has no rows to write."""
        return not (len(self) or self._health)

    @property
    def health(self) -> list[tuple[str, str, str]]:
        """The rows of health: plugin, body, updated."""
        return [*self._health.values()]

    @property
    def receipts(self) -> list[tuple[str, str, str]]:
        """The rows of receipts: turn, at, body."""
        return [*self._receipts.values()]

    def take(self, item: Item) -> None:
        """Add one item. Never raises because of its content."""
        if isinstance(item, AuditEvent):
            row, failure = attempt(partial(_row, item))
            self.events.append(row or host_event("audit_event_unwritable", item.at, error=failure))
        elif isinstance(item, ReceiptRow):
            # `evaluate` calls the body of a turn's last receipt only.
            self._given[item.turn] = item
        elif isinstance(item, HealthRow):
            self._health[item.plugin] = (item.plugin, self._body("health", item.body, item.at), stamp(item.at))
        elif isinstance(item, Flush):
            self._waiting.append(item)
        else:
            self.stopped = True

    def evaluate(self) -> None:
        """Turn the receipts taken so far into rows; calls their bodies here, so that no caller waits for that."""
        for given in self._given.values():
            body, failure = attempt(given.body if callable(given.body) else partial(dict, given.body))
            text = self._body("receipt", {"unwritable": failure} if failure else body, given.at)
            if failure:
                self.events.append(host_event("audit_body_unwritable", given.at, what="receipt", error=failure))
            self._receipts[given.turn] = (given.turn, stamp(given.at), text)
        self._given.clear()

    def release(self, failure: str | None) -> None:
        """Set every waiting flush done, with the category of the failure if the rows are not durable."""
        for flush in self._waiting:
            flush.failure = failure
            flush.done.set()
        self._waiting.clear()

    def clear(self) -> None:
        """Remove the rows after they are written."""
        self.events.clear()
        self._receipts.clear()
        self._health.clear()

    def _body(self, what: str, body: object, at: datetime) -> str:
        text, failure = attempt(partial(_encode, body))
        if text is not None:
            return text
        self.events.append(host_event("audit_body_unwritable", at, what=what, error=failure))
        return _encode({"unwritable": failure})


def host_event(name: str, at: datetime, **facts: str | int | None) -> Fields:
    """Return the row of an event about the trail itself."""
    return (stamp(at), name, None, None, None, None, _encode(facts))


def attempt(call: Callable[[], Answer]) -> tuple[Answer | None, str | None]:
    """Run code that may be foreign; return its result, or only the type name of the error that it raised.

    The caller reports the error.
    """
    try:
        return call(), None
    # Any exception on the writer's thread would end the trail.
    except BaseException as error:  # noqa: BLE001
        return None, type_name(error)


def _row(event: AuditEvent) -> Fields:
    facts = _encode(dict(event.facts))
    return (stamp(event.at), event.name, event.plugin, event.hook, event.turn, event.session, facts)
