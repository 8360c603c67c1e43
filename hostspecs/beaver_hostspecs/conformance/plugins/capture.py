"""Cases about the texts that a plugin keeps, and those that it must not keep."""

import shutil
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from beaver_hostspecs.conformance.cases import Case
from beaver_hostspecs.conformance.plugins.driver import (
    QUESTION,
    Driven,
    demand,
    fact,
    need,
    not_shown,
    shows,
    started,
    teach,
)
from beaver_hostspecs.conformance.plugins.harness import PluginHarness
from beaver_hostspecs.contributions import Contribution
from beaver_hostspecs.reports import OutcomeKind
from beaver_hostspecs.testing import make_compaction, make_tool_result
from beaver_hostspecs.turns import DropReason, Trust

KEPT = "Ardea-kept"
TROUBLE = {OutcomeKind.FAILED, OutcomeKind.UNKNOWN}


async def _confirms(harness: PluginHarness) -> None:
    need(harness, "confirms_compaction", "learns")
    await harness.open()
    async with started(harness) as driven:
        await teach(harness, driven, KEPT)
        await _compact(driven)
        demand(shows(await _after_a_crash(harness, driven), KEPT), "it confirms a compaction and forgets what was said")


async def _compact(driven: Driven) -> None:
    report = driven.report(driven.deadline("before_compaction"))
    compaction = make_compaction(trust=Trust.FULL)
    answer = await driven.call("before_compaction", compaction=compaction, report=report)
    demand(answer is None, "`before_compaction` is to answer nothing")
    failed = report.degradations or any(kind in TROUBLE for _, kind, _ in report.outcomes)
    demand(not failed, "it reports a failure instead of confirming the compaction")


async def _after_a_crash(harness: PluginHarness, driven: Driven) -> Contribution | None:
    """Return what a new instance recalls over the files as they are now, as after the end of the process."""
    with TemporaryDirectory(prefix="beaver-conformance-", ignore_cleanup_errors=True) as folder:
        shutil.copytree(driven.folder, folder, dirs_exist_ok=True)
        other = Driven(harness.make(), harness.settings, Path(folder))
        other.configure()
        await other.start()
        try:
            return await other.ask(QUESTION)
        finally:
            await other.stop()


KEPT, INJECTED, PRIVATE, UNANSWERED = "Ardea-kept", "Ardea-injected", "Ardea-private", "Ardea-unanswered"


async def _learns(harness: PluginHarness) -> None:
    await harness.open()
    async with started(harness) as driven:
        await teach(harness, driven, KEPT)
        heard = await driven.ask(QUESTION)
        need(harness, "learns")
        demand(shows(heard, KEPT), "what was said in a turn is not recalled in the next one")


async def _not_again(harness: PluginHarness) -> None:
    await harness.open()
    async with started(harness) as driven:
        asked = _asked_about(INJECTED)
        result = make_tool_result(output=fact(INJECTED), external=True)
        await driven.run(harness.saying(fact(INJECTED)), was_injected=asked)
        await driven.run("What do you recall?", answer=fact(INJECTED), was_injected=asked)
        await driven.run("Look it up.", answer="Done.", results=(result,), was_injected=asked)
        heard = await driven.ask(QUESTION)
        need(harness, "refuses_injected")
        not_shown([heard], INJECTED, "it recalls what it was told that the host had injected")


async def _private(harness: PluginHarness) -> None:
    await harness.open()
    async with started(harness) as driven:
        result = make_tool_result(output=fact(PRIVATE), arguments={"what": PRIVATE}, summary=PRIVATE, private=True)
        error = make_tool_result(call_id="call-2", outcome="error", output=None, error=fact(PRIVATE), private=True)
        await driven.run("Look it up.", answer="Done.", results=(result, error))
        not_shown([await driven.ask(QUESTION)], PRIVATE, "it recalls the private result of a tool")
        written = [name for name, data in driven.files().items() if PRIVATE.encode() in data]
        demand(not written, "the private result of a tool is in its state folder")
        told = [report for report in driven.reports if PRIVATE in repr((report.events, report.outcomes))]
        demand(not told, "the private result of a tool is in a report")


async def _unanswered(harness: PluginHarness) -> None:
    await harness.open()
    async with started(harness) as driven:
        for reason in DropReason:
            turn = driven.turn_of(harness.saying(fact(UNANSWERED)))
            await driven.before(turn)
            await driven.drop(turn, reason)
        not_shown([await driven.ask(QUESTION)], UNANSWERED, "it recalls what was said in a turn that was dropped")


async def _no_block(harness: PluginHarness) -> None:
    await harness.open()
    async with started(harness) as driven:
        await teach(harness, driven, KEPT)
        result = make_tool_result(output=fact(KEPT), external=True)
        await driven.run("Look it up.", answer=fact(KEPT), results=(result,))
        await driven.ask(QUESTION)
        demand(not _in_blocks(driven, KEPT), "what was said in a turn stands in a trusted block")


def _in_blocks(driven: Driven, marker: str) -> bool:
    return any(marker in block for contribution in driven.said for block in contribution.blocks)


def _asked_about(marker: str) -> Callable[[str], bool]:
    return lambda text: marker in text


CASES: tuple[Case[PluginHarness], ...] = (
    Case(
        name="recalls what it learned",
        shows="What is said in one turn is recalled in the next one.",
        flags=("learns",),
        run=_learns,
    ),
    Case(
        name="does not learn its own recall",
        shows="What `turn.was_injected` knows is not learned, even when the user or the model repeats it.",
        flags=("refuses_injected",),
        run=_not_again,
    ),
    Case(
        name="keeps nothing private",
        shows="The private result of a tool is not recalled, written or reported.",
        run=_private,
    ),
    Case(
        name="keeps nothing of dropped turns",
        shows="What is said in a turn without an answer is not recalled.",
        run=_unanswered,
    ),
    Case(name="trusts nothing said", shows="What is said in turns never stands in a trusted block.", run=_no_block),
    Case(
        name="confirms what is durable",
        shows="What was said before a compaction that it confirms is recalled over its files after a crash.",
        flags=("confirms_compaction", "learns"),
        run=_confirms,
    ),
)
