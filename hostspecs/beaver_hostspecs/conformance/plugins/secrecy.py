"""No credential gets out, in an answer, a report or a file of the plugin."""

import contextlib
import io
import logging
import traceback
from collections.abc import AsyncIterator, Awaitable, Iterable, Iterator
from contextlib import asynccontextmanager
from itertools import chain

import attrs

from beaver_hostspecs.conformance.cases import Case
from beaver_hostspecs.conformance.plugins.driver import (
    DEFAULT_SECONDS,
    QUESTION,
    Driven,
    Ended,
    need,
    outcome,
    started,
    teach,
    texts_of,
)
from beaver_hostspecs.conformance.plugins.harness import PluginHarness
from beaver_hostspecs.conformance.plugins.offers import command_tries, tool_tries
from beaver_hostspecs.conformance.plugins.turns import RESULTS
from beaver_hostspecs.testing import RecordingReport, traces


@attrs.define(kw_only=True)
class _Heard:
    """All outputs of a plugin during its life.

    Attributes:
        answers: the answers of tools and commands.
        errors: every error that came out, with its chain.
        log: every line that was logged or printed.
        files: the content of its state folder at the end.
        driven: the plugin.
    """

    answers: list[str] = attrs.field(factory=list)
    errors: list[str] = attrs.field(factory=list)
    log: list[str] = attrs.field(factory=list)
    files: dict[str, bytes] = attrs.field(factory=dict)
    driven: Driven


async def _says(harness: PluginHarness) -> None:
    heard = await _life(harness)
    driven = heard.driven
    shown = [text for each in driven.said for text in [repr(each), repr(attrs.asdict(each)), *texts_of(each)]]
    offered = [repr((each.schema, each)) for each in driven.tools] + [repr(each) for each in driven.commands]
    _clean(harness, shown, "its contributions")
    _clean(harness, [repr(driven.info), *driven.info.rules, driven.info.summary], "its description")
    _clean(harness, [*offered, *heard.answers], "what its tools and commands offer and answer")
    _clean(harness, [str(driven.plugin), repr(driven.plugin)], "its `str` or `repr`")


async def _reports(harness: PluginHarness) -> None:
    heard = await _life(harness)
    _clean(harness, [_told(report) for report in heard.driven.reports], "its reports")
    _clean(harness, heard.log, "what it logged or printed")
    _clean(harness, heard.errors, "an error that it raised")


async def _writes(harness: PluginHarness) -> None:
    heard = await _life(harness)
    _clean(harness, [*heard.files], "the name of a file in its state folder")
    _clean(harness, heard.files.values(), "a file in its state folder")


async def _life(harness: PluginHarness) -> _Heard:
    """Run a plugin with and without trouble, and keep all of its outputs."""
    need(harness, "holds_secret")
    await harness.open()
    with _listening() as log:
        async with _living(harness) as heard:
            await _good_times(harness, heard)
            await harness.trouble()
            await _try(heard, _good_times(harness, heard))
        heard.log = log
    return heard


@asynccontextmanager
async def _living(harness: PluginHarness) -> AsyncIterator[_Heard]:
    async with started(harness) as driven:
        heard = _Heard(driven=driven)
        yield heard
        heard.files |= driven.files()


async def _good_times(harness: PluginHarness, heard: _Heard) -> None:
    driven = heard.driven
    await _try(heard, teach(harness, driven, "Ardea"))
    await _try(heard, driven.run(QUESTION, results=RESULTS))
    await _try(heard, driven.ask(QUESTION))
    for what, call in chain(tool_tries(driven), command_tries(driven)):
        await _try(heard, outcome(DEFAULT_SECONDS, call, what))
    heard.files |= driven.files()


async def _try(heard: _Heard, call: Awaitable[object]) -> None:
    """Keep the answer or the error; other cases judge whether the call may fail."""
    try:
        answer = await call
    except Ended as ended:
        heard.errors.append("".join(traceback.format_exception(ended.error)))
    except AssertionError as failed:
        heard.errors.append("".join(traceback.format_exception(failed)))
    else:
        heard.answers += [str(answer), repr(answer)]


class _Keeping(logging.Handler):
    def __init__(self, lines: list[str]) -> None:
        super().__init__(logging.DEBUG)
        self._lines = lines
        self.setFormatter(logging.Formatter("%(name)s %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        self._lines.append(f"{self.format(record)} {record.__dict__}")


@contextlib.contextmanager
def _listening() -> Iterator[list[str]]:
    """Yield the lines that are logged at any level or printed."""
    lines: list[str] = []
    root, handler, printed = logging.getLogger(), _Keeping(lines), io.StringIO()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            yield lines
    finally:
        root.setLevel(level)
        root.removeHandler(handler)
        lines.append(printed.getvalue())


def _told(report: RecordingReport) -> str:
    told = (report.events, report.candidate_lists, report.decisions, report.outcomes, report.clippings)
    # A personal fact is hashed by the host; a credential has no place there either.
    facts = [*(facts for _, facts in report.events), *(facts for _, _, facts in report.outcomes)]
    personal = [str(getattr(fact, "value", "")) for each in facts for fact in each.values()]
    return repr((told, report.degradations, personal, [dict(each) for each in facts]))


def _clean(harness: PluginHarness, texts: Iterable[str | bytes], where: str) -> None:
    if harness.secret is None:
        raise AssertionError("the card says that it holds a secret, and the harness has none")
    for text in texts:
        if found := traces(harness.secret.reveal(), text):
            raise AssertionError(f"{where} shows the credential: {', '.join(found)}")


CASES: tuple[Case[PluginHarness], ...] = (
    Case(
        name="says no secret",
        shows="Contributions, description, answers of tools and commands, `str` and `repr` show no credential.",
        flags=("holds_secret",),
        run=_says,
    ),
    Case(
        name="reports no secret",
        shows="Neither do reports, logs, what is printed, and errors with their chains.",
        flags=("holds_secret",),
        run=_reports,
    ),
    Case(
        name="writes no secret",
        shows="Neither do the files in its state folder.",
        flags=("holds_secret",),
        run=_writes,
    ),
)
