"""Recall before a run and persistence after it, each reported. A failure of the gateway never ends a turn.

The names of the events and their facts are a fixed vocabulary; docs/reference/gateway.md lists it. They hold names,
counts and categories, and no text.
"""

import asyncio
from collections import OrderedDict

from beaver_hooks_gateway.client import GatewayClient, Sending
from beaver_hooks_gateway.errors import GatewayError, GatewayUnknown
from beaver_hooks_gateway.settings import GatewaySettings
from beaver_hooks_gateway.shared_breaker import PATIENCE, SharedBreaker
from beaver_hooks_gateway.wire import RecalledMemory, chat, reference
from beaver_hostspecs import Answer, Compaction, OutcomeKind, Personal, Reference, Report, Trust, Turn

MARGIN = 0.1
"""Seconds of a hook's deadline that are reserved for reporting."""

NEEDED = Trust.INNER
"""The least trust of a turn that is searched and added: the gateway's one identity is the owner's."""

PLANE = "gateway"
"""The plane of the outcome of an add."""

FLUSH_PLANE = "gateway_flush"
"""The plane of the outcome of a flush: a failed flush loses no added turn."""

MOST_UNSETTLED = 1_000
"""The sessions of which is kept that an add or a flush was not confirmed."""


class MemoryGatewayService:
    """Recalls and persists through one gateway.

    Args:
        client: the client of the gateway.
        settings: which chats to search and whether to add.
        breaker: decides whether to search now.
    """

    def __init__(self, client: GatewayClient, settings: GatewaySettings, breaker: SharedBreaker) -> None:
        self._client = client
        self._settings = settings
        self._breaker = breaker
        self._unsettled: OrderedDict[str, str] = OrderedDict()

    async def recall_before_run(self, turn: Turn, report: Report) -> tuple[Reference, ...]:
        """Return the gateway's results for the prompt: untrusted text, best first."""
        if reason := _why_not(turn, wanted=self._settings.recall):
            _skip_recall(reason, turn, report)
            return ()
        if (refusal := await self._breaker.refusal()) is not None:
            report.decision("breaker", "skipped", refusal)
            facts = {"operation": "search", "category": "breaker_open", "status": None, "cause": refusal}
            report.event("memory_gateway_recall_failed", **facts)
            report.degraded("breaker_open")
            return ()
        return await self._search(turn, report)

    async def persist_after_run(self, turn: Turn, answer: Answer, report: Report) -> None:
        """Add the prompt and the answer once, and flush once if that was confirmed."""
        if reason := _why_not(turn, wanted=self._settings.persist) or ("" if answer.text.strip() else "blank_answer"):
            _skip_add(reason, report)
        elif await self._add(turn, answer, report):
            await self._flush(turn.session, report)

    async def flush_before_compaction(self, compaction: Compaction, report: Report) -> None:
        """Flush a session again whose last flush was not confirmed; report a failure where a turn was not added."""
        if not compaction.trust.reaches(NEEDED):
            return
        unsettled = self._unsettled.pop(compaction.session, None)
        if unsettled is not None:
            await self._flush(compaction.session, report)
        if unsettled == PLANE:
            report.outcome(PLANE, OutcomeKind.FAILED, reason="earlier_turn")

    def _unsettle(self, session: str, plane: str) -> None:
        """Keep that an add or a flush of a session was not confirmed; a missing add outweighs a flush."""
        if self._unsettled.get(session) != PLANE:
            self._unsettled[session] = plane
        if len(self._unsettled) > MOST_UNSETTLED:
            self._unsettled.popitem(last=False)

    async def _search(self, turn: Turn, report: Report) -> tuple[Reference, ...]:
        seconds = _seconds(self._settings.timeout_seconds, report)
        try:
            found = await self._client.search(session=turn.session, query=turn.prompt, seconds=seconds)
        except GatewayError as error:
            report.event("memory_gateway_recall_failed", **_facts(error))
            report.degraded(f"recall_{error.category}")
            await self._count(error, report)
            return ()
        references = self._report_found(found, report)
        await self._breaker.answered()
        return references

    def _report_found(self, found: RecalledMemory, report: Report) -> tuple[Reference, ...]:
        references = tuple(reference(result, str(self._settings.user_id)) for result in found.results)
        report.candidates((str(each.id), each.score) for each in references)
        if len(references) < found.total:
            report.clipped("results", len(references), found.total)
        scope = list(self._settings.scope)
        report.event("memory_gateway_recall_succeeded", scope=scope, result_count=len(references))
        report.recovered()
        return references

    async def _count(self, error: GatewayError, report: Report) -> None:
        """Report a failed search to the breaker."""
        if await self._breaker.failed(error, seconds=min(PATIENCE, report.remaining() / 2)):
            category = self._breaker.state.reason or error.category
            seconds = self._settings.breaker.seconds
            report.event("memory_gateway_breaker_opened", category=category, seconds=seconds)

    async def _add(self, turn: Turn, answer: Answer, report: Report) -> bool:
        """Return whether the add was confirmed."""
        sending, seconds = Sending(), _seconds(self._settings.timeout_seconds, report)
        try:
            count = await self._client.add(turn, answer, seconds=seconds, sending=sending)
        except GatewayError as error:
            self._unsettle(turn.session, PLANE)
            _fail_add(error, report)
            return False
        except asyncio.CancelledError:
            self._unsettle(turn.session, PLANE)
            if sending.begun:
                _fail_add(GatewayUnknown("add", "unknown"), report)
            else:
                _skip_add("cancelled", report)
            raise
        session = Personal(value=chat(turn.session))
        report.event("memory_gateway_add_succeeded", session_id=session, message_count=count)
        report.outcome(PLANE, OutcomeKind.STORED, messages=count)
        return True

    async def _flush(self, session: str, report: Report) -> None:
        try:
            await self._client.flush(session=session, seconds=_seconds(self._settings.flush_seconds, report))
        except GatewayError as error:
            self._unsettle(session, FLUSH_PLANE)
            _fail_flush(error, report)
        except asyncio.CancelledError:
            self._unsettle(session, FLUSH_PLANE)
            _fail_flush(GatewayError("flush", "cancelled"), report)
            raise
        else:
            if self._unsettled.get(session) == FLUSH_PLANE:
                del self._unsettled[session]
            report.event("memory_gateway_flush_succeeded", session_id=Personal(value=chat(session)))
            report.outcome(FLUSH_PLANE, OutcomeKind.STORED)


def _why_not(turn: Turn, *, wanted: bool) -> str:
    """Return why the prompt of a turn is not sent to the gateway, or an empty text."""
    if not wanted:
        return "off"
    if not turn.trust.reaches(NEEDED):
        return "trust"
    return "" if turn.prompt.strip() else "blank_prompt"


def _skip_recall(reason: str, turn: Turn, report: Report) -> None:
    if reason == "trust":
        report.decision(reason, "left_out", str(turn.trust))
    else:
        report.decision("recall", "skipped", reason)
    report.event("memory_gateway_recall_skipped", reason=reason)


def _skip_add(reason: str, report: Report) -> None:
    report.event("memory_gateway_add_skipped", reason=reason)
    report.outcome(PLANE, OutcomeKind.SKIPPED, reason=reason)


def _fail_add(error: GatewayError, report: Report) -> None:
    kind = OutcomeKind.UNKNOWN if error.category == "unknown" else OutcomeKind.FAILED
    report.event("memory_gateway_add_failed", **_facts(error))
    report.outcome(PLANE, kind, category=error.category)


def _fail_flush(error: GatewayError, report: Report) -> None:
    report.event("memory_gateway_flush_failed", **_facts(error), add_succeeded=True)
    report.outcome(FLUSH_PLANE, OutcomeKind.FAILED, category=error.category)


def _facts(error: GatewayError) -> dict[str, str | int | None]:
    return {"operation": error.operation, "category": error.category, "status": error.status}


def _seconds(wanted: float, report: Report) -> float:
    """Return how long a request may take: as configured, within the rest of the hook's deadline."""
    return max(0.0, min(wanted, report.remaining() - MARGIN))
