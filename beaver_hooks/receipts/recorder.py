"""The recorder: events go to the sinks, the audit trail among them, and to the log.

A failure of a hook is also written to the turn's receipt and to the plugin's health.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from beaver_hooks.audit.events import AuditEvent, AuditSink
from beaver_hooks.audit.trail import Trail
from beaver_hooks.log import Log
from beaver_hooks.receipts.facts import Cleaner, Identify
from beaver_hooks.receipts.health import Health
from beaver_hooks.receipts.health_store import HealthStore
from beaver_hooks.receipts.receipt_builder import ReceiptBuilder
from beaver_hooks.receipts.receipts import Failure, to_json
from beaver_hooks.receipts.traceback_location import frames_of, place_of
from beaver_hostspecs import AuditUnavailable, Clock, scrub
from beaver_hostspecs.naming import type_name

NOTHING: Mapping[str, object] = MappingProxyType({})

LOG_FIELDS = frozenset(
    {"event", "plugin", "hook", "turn", "exc_info", "stack_info", "stacklevel", "extra", "self", "method_name"}
)
"""Field names with a fixed meaning in a log line; a fact of the same name gets the prefix `fact_`."""

LOG = "log"
"""The source of the host's own fault while a handler of the application's log raises."""

TRUST = "trust"
"""The gate of decisions that leave memories out because of a caller's trust."""

REMEDY = (
    "for the owner of the memory use trust `full`: agent.trust in the configuration, --trust of a command, or trust="
    " of an adapter"
)

MOST_NOTICES, LONGEST_NOTICE = 20, 2000
"""How many notices of a plugin are kept, and how many characters of each."""

HOST = "host"
"""The name of the host's own health; no plugin may have it."""

AUDIT = "audit"
"""The source of the host's own fault while the audit trail cannot be written."""

SWITCH = "memory_switch"
"""The source of the host's own fault while it cannot read the memory switch."""

EVENT_LOOP = "event_loop"
"""The source of a plugin's fault when it blocks the event loop outside its hooks."""


class Recorder:
    """Records events, failures and recoveries. None of its methods raises because a write fails.

    Args:
        clock: the source of the time.
        trail: the audit trail, or `None` if it could not be opened.
        sinks: further destinations of audit events.
        health: the health of the plugins.
        identify: returns the keyed hash of a value.
        log: the host's log.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        trail: Trail | None = None,
        sinks: Iterable[AuditSink],
        health: HealthStore,
        identify: Identify,
        log: Log,
    ) -> None:
        self.health = health
        self.identify = identify
        self._clock = clock
        self.trail = trail
        sinks = [*([] if trail is None else [trail]), *sinks]
        self._sinks = {f"sink_{number}_{type_name(sink)}": sink for number, sink in enumerate(sinks)}
        self._log = log
        self.notices: dict[str, tuple[str, ...]] = {}
        self._failing: set[str] = set()
        self._trust_told = False

    def event(
        self,
        name: str,
        facts: Mapping[str, object] = NOTHING,
        *,
        builder: ReceiptBuilder | None = None,
        plugin: str | None = None,
        hook: str | None = None,
        loudly: bool = False,
        sentence: str | None = None,
    ) -> None:
        """Append an audit event and log it: as a warning if `loudly`, else at debug level.

        Only the log has the `sentence`, an explanation that a person needs.
        """
        cleaner = self.cleaner(builder)
        event = AuditEvent(
            name=cleaner.name(name),
            at=self._clock.now(),
            plugin=plugin,
            hook=hook and cleaner.code(hook),
            turn=builder.recorded if builder else None,
            session=builder.session if builder else None,
            facts=cleaner.facts(facts),
        )
        for source, sink in self._sinks.items():
            self._append(source, sink, event)
        fields: dict[str, object] = {"plugin": plugin, "hook": event.hook, "turn": event.turn}
        fields |= {f"fact_{key}" if key in LOG_FIELDS else key: fact for key, fact in event.facts.items()}
        fields |= {"reason": sentence} if sentence else {}
        self._say("warning" if loudly else "debug", event.name, **fields)
        self.check_trail()

    def failed(
        self,
        plugin: str,
        *,
        hook: str,
        category: str,
        builder: ReceiptBuilder | None = None,
        error: BaseException | None = None,
    ) -> None:
        """Record a failure that a hook did not report itself, in an audit event, the receipt and the health."""
        kind, at = (None, None) if error is None else self._kind(error, builder)
        if builder is not None:
            builder.plugins[plugin].enter(Failure(hook=hook, category=category, error=kind, at=at))
        self.health.failed(plugin, source=hook, category=category)
        since = self.health[plugin].since
        facts = {"category": category, "error": kind, "at": at, "degraded_since": since and since.isoformat()}
        self.event("plugin_failed", facts, builder=builder, plugin=plugin, hook=hook, loudly=True)
        if error is not None and (frames := frames_of(error)):
            self._say("debug", "plugin_error", plugin=plugin, hook=hook, error=kind, frames=[*map(str, frames)])

    def blocked(self, plugin: str | None, *, hook: str | None, seconds: float, builder: ReceiptBuilder | None) -> None:
        """Record that a plugin, or unknown code, blocks the event loop; the watchdog's thread calls it meanwhile."""
        if plugin is not None:
            self.health.failed(plugin, source=hook or EVENT_LOOP, category="blocked")
        facts = {"seconds": round(seconds, 3)}
        self.event("event_loop_blocked", facts, builder=builder, plugin=plugin, hook=hook, loudly=True)

    def succeeded(self, plugin: str, *, source: str, builder: ReceiptBuilder | None = None) -> None:
        """Record that a source of the plugin succeeded, and audit its recovery."""
        if self.health.succeeded(plugin, source=source):
            self.event("plugin_recovered", {"source": source}, builder=builder, plugin=plugin, loudly=True)

    def degraded(self, plugin: str, *, source: str, category: str, builder: ReceiptBuilder | None = None) -> None:
        """Record a fault that the plugin reported itself, and audit the change of its health."""
        if self.health.failed(plugin, source=source, category=category):
            facts = {"source": source, "category": category}
            self.event("plugin_degraded", facts, builder=builder, plugin=plugin, loudly=True)

    def healths(self) -> dict[str, Health]:
        """Return the health of every plugin that this host knows, and its own."""
        self.check_trail()
        return self.health.all()

    def readable_trail(self) -> Trail:
        """Return the trail, or raise `AuditUnavailable` if it could not be opened."""
        if self.trail is None:
            raise AuditUnavailable("the audit trail could not be opened; the host's health and log show why")
        return self.trail

    def keep(self, builder: ReceiptBuilder) -> None:
        """Keep the current receipt of a turn; a later one replaces it. The trail's thread makes and writes it."""
        if self.trail is not None:
            self.trail.put_receipt(builder.recorded, builder.opened, lambda: to_json(builder.receipt(self.identify)))

    def check_trail(self) -> None:
        """Change the host's health if writing the trail has begun to fail, or works again."""
        while self.trail is not None and (change := self.trail.next_change()) is not None:
            if change.failure is None:
                self.succeeded(HOST, source=AUDIT)
            else:
                self.degraded(HOST, source=AUDIT, category=change.failure)

    def trust_left_out(self, plugin: str, trust: str) -> None:
        """Log that a caller's trust leaves memories out, with the remedy; once per host."""
        if not self._trust_told:
            self._trust_told = True
            self._say("warning", "memory_left_out", plugin=plugin, trust=str(trust), remedy=REMEDY)

    def notice(self, plugin: str, text: str) -> None:
        """Keep a plugin's notice for the person at the terminal, each text once, and log it."""
        told, text = self.notices.get(plugin, ()), " ".join(scrub(text).split())[:LONGEST_NOTICE]
        if text not in told and len(told) < MOST_NOTICES:
            self.notices[plugin] = (*told, text)
            self._say("info", "plugin_notice", plugin=plugin, text=text)

    def cleaner(self, builder: ReceiptBuilder | None) -> Cleaner:
        """Return the cleaner of the reports of a turn, or of no turn."""
        return Cleaner(self.identify, builder.private if builder else frozenset())

    def _kind(self, error: BaseException, builder: ReceiptBuilder | None) -> tuple[str, str | None]:
        """Return the type of an error and the place that raised it."""
        code, place = self.cleaner(builder).code, place_of(error)
        return code(type_name(error)), place and code(place)

    def _append(self, source: str, sink: AuditSink, event: AuditEvent) -> None:
        """Append an event to a sink; log once that a sink raises, and go on."""
        try:
            sink.append(event)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - a sink may be foreign code
            if self._heard(source, type_name(error)):
                self._say("error", "audit_sink_failed", source=source, error=type_name(error))
        else:
            self._heard(source, None)

    def _say(self, level: str, name: str, /, **fields: object) -> None:
        """Log an event; a handler that raises is a fault of the host, and no error of the caller."""
        trouble = getattr(self._log, level)(name, **fields)
        if trouble is not None or level != "debug":  # an unlogged debug event does not prove that handlers work
            self._heard(LOG, trouble)

    def _heard(self, source: str, trouble: str | None) -> bool:
        """Change the host's health by the result of a sink or the log; return whether its trouble is new."""
        if trouble is None:
            if source in self._failing:
                self.health.succeeded(HOST, source=source)
                self._failing.discard(source)
            return False
        self.health.failed(HOST, source=source, category="raised")
        is_new = source not in self._failing
        self._failing.add(source)
        return is_new
