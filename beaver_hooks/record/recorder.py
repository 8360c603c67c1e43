"""The one place through which everything that happens reaches the audit trail, the receipts, the health and the log."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import cast

from beaver_hooks.audit.events import AuditEvent, AuditSink, Facts
from beaver_hooks.log import Log
from beaver_hooks.record.accounts import Account
from beaver_hooks.record.facts import Identify, clean, clean_text
from beaver_hooks.record.health_book import HealthBook
from beaver_hooks.record.receipts import Fault
from beaver_hostspecs import Clock
from beaver_hostspecs.naming import type_name

NUMBERS = frozenset({int, bool, type(None)})

NOTHING: Mapping[str, object] = MappingProxyType({})

LOG_FIELDS = frozenset(
    {"event", "plugin", "hook", "turn", "exc_info", "stack_info", "stacklevel", "extra", "self", "method_name"}
)
"""What a log line means by these names is settled; facts of the same name are told apart."""

HOST = "host"
"""The name under which the host keeps its own health; no plugin may have it."""


class Recorder:
    """Writes down what happens. None of its methods raises because something cannot be written.

    Args:
        clock: where time comes from.
        sinks: where audit events go.
        health: the health of the plugins.
        identify: returns the keyed hash of a value.
        log: the host's log.
    """

    def __init__(
        self, *, clock: Clock, sinks: Iterable[AuditSink], health: HealthBook, identify: Identify, log: Log
    ) -> None:
        self.health = health
        self.identify = identify
        self._clock = clock
        self._sinks = {f"sink_{number}_{type_name(sink)}": sink for number, sink in enumerate(sinks)}
        self._log = log
        self._failing: set[str] = set()

    def event(
        self,
        name: str,
        facts: Mapping[str, object] = NOTHING,
        *,
        account: Account | None = None,
        plugin: str | None = None,
        hook: str | None = None,
        loudly: bool = False,
    ) -> None:
        """Append an audit event and log it: as a warning if `loudly`, else for whoever debugs."""
        kept = self._clean(facts, account)
        event = AuditEvent(
            name=name,
            at=self._clock.now(),
            plugin=plugin,
            hook=hook,
            turn=account.recorded if account else None,
            session=account.session if account else None,
            facts=kept,
        )
        for source, sink in self._sinks.items():
            self._append(source, sink, event)
        say = self._log.warning if loudly else self._log.debug
        fields = {f"fact_{key}" if key in LOG_FIELDS else key: fact for key, fact in kept.items()}
        say(name, plugin=plugin, hook=hook, turn=event.turn, **fields)

    def failed(
        self,
        plugin: str,
        *,
        hook: str,
        category: str,
        account: Account | None = None,
        error: BaseException | None = None,
    ) -> None:
        """A hook of the plugin failed and nobody reported it: audit event, receipt, health."""
        kind = self.text(type_name(error), account) if error is not None else None
        if account is not None:
            account.plugins[plugin].enter(Fault(hook=hook, category=category, error=kind))
        self.health.failed(plugin, source=hook, category=category)
        since = self.health[plugin].since
        facts = {"category": category, "error": kind, "degraded_since": since and since.isoformat()}
        self.event("plugin_failed", facts, account=account, plugin=plugin, hook=hook, loudly=True)
        if error is not None:
            self._log.debug("plugin_error", plugin=plugin, hook=hook, error=self.text(_said(error), account))

    def succeeded(self, plugin: str, *, source: str, account: Account | None = None) -> None:
        """Something of the plugin succeeded; its recovery is audited."""
        if self.health.succeeded(plugin, source=source):
            self.event("plugin_recovered", {"source": source}, account=account, plugin=plugin, loudly=True)

    def degraded(self, plugin: str, *, source: str, category: str, account: Account | None = None) -> None:
        """The plugin reported trouble of its own; the change of its health is audited."""
        if self.health.failed(plugin, source=source, category=category):
            facts = {"source": source, "category": category}
            self.event("plugin_degraded", facts, account=account, plugin=plugin, loudly=True)

    def _clean(self, facts: Mapping[str, object], account: Account | None) -> Facts:
        # Numbers alone name nobody, and what names somebody costs time to find; the keys are ours or clean already.
        if all(type(fact) in NUMBERS for fact in facts.values()):
            return cast("Facts", facts)
        return clean(facts, personal=account.personal if account else (), identify=self.identify)

    def text(self, text: str, account: Account | None) -> str:
        """Return `text` as it may be recorded."""
        return clean_text(text, personal=account.personal if account else (), identify=self.identify)

    def _append(self, source: str, sink: AuditSink, event: AuditEvent) -> None:
        """Hand an event to a sink; that a sink breaks its word is said, once, and harms nobody."""
        try:
            sink.append(event)
        except Exception as error:  # noqa: BLE001 - a sink may be anybody's code
            self.health.failed(HOST, source=source, category="raised")
            if source not in self._failing:
                self._failing.add(source)
                self._log.error("audit_sink_failed", source=source, error=type_name(error))
        else:
            if source in self._failing:
                self._failing.remove(source)
                self.health.succeeded(HOST, source=source)


def _said(error: BaseException) -> str:
    """Return what an error says; asking it may fail too."""
    try:
        return str(error)
    except BaseException as trouble:  # noqa: BLE001 - the text is made by the plugin's code
        return f"its text cannot be had ({type_name(trouble)})"
