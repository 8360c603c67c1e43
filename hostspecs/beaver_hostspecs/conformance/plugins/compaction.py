"""A compaction is confirmed only where what the session said survives the end of the process."""

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from beaver_hostspecs.conformance.cases import Case
from beaver_hostspecs.conformance.plugins.driver import Driven, started
from beaver_hostspecs.conformance.plugins.harness import PluginHarness
from beaver_hostspecs.conformance.plugins.scenes import QUESTION, demand, need, shows, teach
from beaver_hostspecs.contributions import Contribution
from beaver_hostspecs.reports import OutcomeKind
from beaver_hostspecs.testing import make_compaction
from beaver_hostspecs.turns import Trust

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


CASES: tuple[Case[PluginHarness], ...] = (
    Case(
        name="confirms what is durable",
        shows="What was said before a compaction that it confirms is recalled over its files after a crash.",
        flags=("confirms_compaction", "learns"),
        run=_confirms,
    ),
)
