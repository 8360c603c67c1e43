"""The Memory Gateway as the plugin uses it: recall before a run, persistence after it. Nothing of it ends a turn."""

import asyncio

from beaver_hooks_gateway import reporting
from beaver_hooks_gateway.client import GatewayClient, Sending
from beaver_hooks_gateway.errors import GatewayError, GatewayUnknown
from beaver_hooks_gateway.gate import PATIENCE, Gate
from beaver_hooks_gateway.settings import GatewaySettings
from beaver_hooks_gateway.wire import Result
from beaver_hostspecs import Answer, Reference, Report, Trust, Turn, scrub

MARGIN = 0.1
"""Seconds of a hook's deadline that are kept back, so that what happened can still be reported."""


NEEDED = Trust.INNER
"""The least trust of a turn that reads and writes the gateway's one identity: it is the owner's."""


class MemoryGatewayService:
    """Recalls and persists through one gateway, and reports what became of it.

    A gateway that fails raises nothing here: that is reported, and the turn goes on without it.

    Args:
        client: the gateway.
        settings: what to ask for.
        gate: whether to ask at all.
    """

    def __init__(self, client: GatewayClient, settings: GatewaySettings, gate: Gate) -> None:
        self._client = client
        self._settings = settings
        self._gate = gate

    async def recall_before_run(self, turn: Turn, report: Report) -> tuple[Reference, ...]:
        """Return what the gateway recalls for the prompt: untrusted text, best first."""
        if reason := self._why_no_recall(turn):
            reporting.tell_recall_skipped(reason, turn, report)
            return ()
        verdict = await self._gate.admit()
        if not verdict.admitted:
            reporting.tell_breaker_refused(verdict.reason, report)
            return ()
        return await self._search(turn, report)

    async def persist_after_run(self, turn: Turn, answer: Answer, report: Report) -> None:
        """Add the prompt and the answer once, and flush once if that was confirmed."""
        if reason := self._why_no_add(turn, answer):
            reporting.tell_add_skipped(reason, report)
        elif await self._add(turn, answer, report):
            await self._flush(turn, report)

    async def _search(self, turn: Turn, report: Report) -> tuple[Reference, ...]:
        try:
            found = await self._client.search(
                session=turn.session, query=turn.prompt, seconds=_seconds(self._settings.timeout_seconds, report)
            )
        except GatewayError as error:
            reporting.tell_recall_failed(error, report)
            await self._shut(error, report)
            return ()
        user_id = self._client.identity.user_id
        reporting.tell_found(found, self._settings.scope, user_id, report)
        await self._gate.answered()
        return tuple(reference(result, user_id) for result in found.results)

    async def _shut(self, error: GatewayError, report: Report) -> None:
        if await self._gate.failed(error, seconds=min(PATIENCE, report.remaining() / 2)):
            reporting.tell_breaker_opened(
                self._gate.state.reason or error.category, self._settings.breaker.seconds, report
            )

    async def _add(self, turn: Turn, answer: Answer, report: Report) -> bool:
        """Return whether the add was confirmed."""
        sending = Sending()
        try:
            count = await self._client.add(
                turn, answer, seconds=_seconds(self._settings.timeout_seconds, report), sending=sending
            )
        except GatewayError as error:
            reporting.tell_add_failed(error, report)
            return False
        except asyncio.CancelledError:
            if sending.begun:
                reporting.tell_add_failed(GatewayUnknown("add", "unknown"), report)
            else:
                reporting.tell_add_skipped("cancelled", report)
            raise
        reporting.tell_added(turn, count, report)
        return True

    async def _flush(self, turn: Turn, report: Report) -> None:
        try:
            await self._client.flush(session=turn.session, seconds=_seconds(self._settings.flush_seconds, report))
        except GatewayError as error:
            reporting.tell_flush_failed(error, report)
        except asyncio.CancelledError:
            reporting.tell_flush_failed(GatewayError("flush", "cancelled"), report)
            raise
        else:
            reporting.tell_flushed(turn, report)

    def _why_no_recall(self, turn: Turn) -> str:
        if not self._settings.recall:
            return "off"
        if not turn.trust.reaches(NEEDED):
            return reporting.TRUST
        return "" if turn.prompt.strip() else "blank_prompt"

    def _why_no_add(self, turn: Turn, answer: Answer) -> str:
        if not self._settings.persist:
            return "off"
        if not turn.trust.reaches(NEEDED):
            return reporting.TRUST
        if not turn.prompt.strip():
            return "blank_prompt"
        return "" if answer.text.strip() else "blank_answer"


def reference(result: Result, user_id: str) -> Reference:
    """Return a result as a host renders it. A gateway that repeats a key does not get it to the model."""
    resource = result.resource_uri is not None or result.source_scope == "resources"
    return Reference(
        text=scrub(result.text),
        kind="resource" if resource else "conversation",
        id=reporting.reference_id(result, user_id),
        score=result.score,
        scope=_scrubbed(result.source_scope),
        session=_scrubbed(result.session_id),
        uri=_scrubbed(result.resource_uri),
    )


def _scrubbed(value: str | None) -> str | None:
    return None if value is None else scrub(value)


def _seconds(wanted: float, report: Report) -> float:
    """Return how long a request may take: as configured, and within what is left of the hook's own deadline."""
    return max(0.0, min(wanted, report.remaining() - MARGIN))
