"""Drives one plugin by the contract: its life and its turns, each call in its own task with its own deadline."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Coroutine, Iterable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import attrs

from beaver_hostspecs.conformance.cases import Excused
from beaver_hostspecs.conformance.plugins.harness import PluginHarness
from beaver_hostspecs.conformance.plugins.hook_reader import hooks_of, wanted_by
from beaver_hostspecs.contributions import Contribution
from beaver_hostspecs.markers import CONTRACT_VERSION
from beaver_hostspecs.plugins import Command, Deadlines, PluginInfo, Setup, Tool
from beaver_hostspecs.rendering import render_references
from beaver_hostspecs.testing import RecordingReport, make_answer, make_turn
from beaver_hostspecs.turns import Answer, DropReason, ToolResult, Trust, Turn

T = TypeVar("T")

DEFAULT_SECONDS = 5.0
"""The deadline of a hook for which the plugin declares none."""

BOUNDARY = "conformance-boundary-1"

QUESTION = "What do we know about the heron at the weir, and when does it come?"
MOST_POINTS = 12
"""The most awaits at which a call is interrupted."""


@attrs.frozen(kw_only=True)
class Ended(Exception):
    """A call of the plugin raised."""

    what: str
    error: BaseException


class Driven:
    """A plugin in service.

    Attributes:
        plugin: the plugin.
        info: its description.
        tools: its tools for the model.
        commands: its commands for the user.
        said: every contribution so far.
        reports: the report of every call so far.
        folder: its state folder.
    """

    def __init__(self, plugin: object, settings: object, folder: Path) -> None:
        self.plugin, self.folder = plugin, folder
        self.said: list[Contribution] = []
        self.reports: list[RecordingReport] = []
        self.tools: tuple[Tool, ...] = ()
        self.commands: tuple[Command, ...] = ()
        self.info = PluginInfo(version="", contract=CONTRACT_VERSION)
        self._settings = settings
        self._hooks = hooks_of(plugin)
        self._deadlines: Deadlines | None = None
        self._numbers = 0

    def configure(self) -> None:
        """Call `describe` and `configure`."""
        if "describe" in self._hooks:
            self.info = _a(PluginInfo, self.plain("describe"), "describe")
        setup = Setup(settings=self._settings, state_folder=self.folder, report=self.report())
        if (deadlines := self.plain("configure", setup=setup)) is not None:
            self._deadlines = _a(Deadlines, deadlines, "configure")
        self.tools = tuple(_a(Tool, each, "provide_tools") for each in self.plain("provide_tools") or ())
        self.commands = tuple(_a(Command, each, "provide_commands") for each in self.plain("provide_commands") or ())

    async def start(self) -> None:
        """Start it."""
        _nothing("start", await self.call("start"))

    async def stop(self) -> None:
        """Stop it."""
        _nothing("stop", await self.call("stop"))

    def report(self, remaining: float = DEFAULT_SECONDS) -> RecordingReport:
        """Return a report for one call."""
        self.reports.append(RecordingReport(remaining=remaining))
        return self.reports[-1]

    def turn_of(self, prompt: str, **fields: object) -> Turn:
        """Return a turn with an id of its own; its user has full trust."""
        self._numbers += 1
        return make_turn(**{"id": f"turn-{self._numbers}", "prompt": prompt, "trust": Trust.FULL, **fields})

    def plain(self, hook: str, **given: object) -> Any:
        """Call a plain hook; `None` where the plugin does not implement it."""
        method = self._hooks.get(hook)
        if method is None:
            return None
        try:
            return method(**{name: given[name] for name in wanted_by(hook, method)})
        except BaseException as error:
            # An uncaught `SystemExit` would end the examination.
            raise AssertionError(f"`{hook}` raised {type(error).__name__}: {error}") from error

    def coroutine(self, hook: str, **given: object) -> Coroutine[Any, Any, object] | None:
        """Return a call of a coroutine hook that has not begun; `None` where the plugin does not implement it."""
        method = self._hooks.get(hook)
        if method is None:
            return None
        taken: Coroutine[Any, Any, object] = method(**{name: given[name] for name in wanted_by(hook, method)})
        return taken

    def deadline(self, hook: str) -> float:
        """Return the seconds that a hook may take."""
        seconds: float | None = getattr(self._deadlines or self.info.deadlines, hook)
        return DEFAULT_SECONDS if seconds is None else seconds

    async def call(self, hook: str, **given: object) -> object:
        """Call a coroutine hook within its deadline.

        Raises:
            AssertionError: it raised, ended as cancelled without a cancellation, or took too long.
        """
        running = self.coroutine(hook, **given)
        return None if running is None else await within(self.deadline(hook), running, f"`{hook}`")

    def files(self) -> dict[str, bytes]:
        """Return the files in its state folder, by their relative paths."""
        found = [path for path in self.folder.rglob("*") if path.is_file()]
        return {str(path.relative_to(self.folder)): path.read_bytes() for path in found}

    # --- Turns --------------------------------------------------------------------------------------------------

    async def before(self, turn: Turn, report: RecordingReport | None = None) -> Contribution | None:
        """Ask for a contribution; demand that it is one, and that it can be rendered."""
        report = report or self.report(self.deadline("before_prompt"))
        answer = await self.call("before_prompt", turn=turn, report=report)
        if answer is None:
            return None
        contribution = _a(Contribution, answer, "before_prompt")
        _rendered(contribution)
        self.said.append(contribution)
        return contribution

    async def result(self, turn: Turn, result: ToolResult, report: RecordingReport | None = None) -> None:
        """Report a tool call."""
        report = report or self.report(self.deadline("on_tool_result"))
        _nothing("on_tool_result", await self.call("on_tool_result", turn=turn, result=result, report=report))

    async def after(self, turn: Turn, answer: Answer | None = None, report: RecordingReport | None = None) -> None:
        """Commit."""
        report = report or self.report(self.deadline("after_prompt"))
        told = await self.call("after_prompt", turn=turn, answer=answer or make_answer(), report=report)
        _nothing("after_prompt", told)

    async def drop(self, turn: Turn, reason: DropReason = DropReason.FAILED) -> None:
        """Drop."""
        report = self.report(self.deadline("on_turn_dropped"))
        _nothing("on_turn_dropped", await self.call("on_turn_dropped", turn=turn, reason=reason, report=report))

    async def run(
        self, prompt: str, *, answer: str = "Yes.", results: Iterable[ToolResult] = (), **fields: object
    ) -> Contribution | None:
        """Run one turn to its answer; return the contribution."""
        turn = self.turn_of(prompt, **fields)
        contribution = await self.before(turn)
        for result in results:
            await self.result(turn, result)
        await self.after(turn, make_answer(text=answer))
        return contribution

    async def ask(self, prompt: str, **fields: object) -> Contribution | None:
        """Return the contribution to a turn that is dropped afterwards, so that the plugin learns nothing from it."""
        turn = self.turn_of(prompt, **fields)
        contribution = await self.before(turn)
        await self.drop(turn, DropReason.CANCELLED)
        return contribution


@asynccontextmanager
async def made(harness: PluginHarness) -> AsyncIterator[Driven]:
    """Yield a new plugin that is configured and not started; do not stop it."""
    with TemporaryDirectory(prefix="beaver-conformance-", ignore_cleanup_errors=True) as folder:
        driven = Driven(harness.make(), harness.settings, Path(folder))
        driven.configure()
        yield driven


@asynccontextmanager
async def started(harness: PluginHarness) -> AsyncIterator[Driven]:
    """Yield a new plugin that is started; stop it at the end."""
    async with made(harness) as driven:
        await driven.start()
        try:
            yield driven
        except BaseException:
            # The verdict is about the first failure.
            with suppress(AssertionError):
                await driven.stop()
            raise
        await driven.stop()


async def within(seconds: float, awaitable: Awaitable[T], what: str) -> T:
    """Await it in a task of its own.

    Raises:
        AssertionError: it raised anything, ended as cancelled, or took longer.
    """
    try:
        return await outcome(seconds, awaitable, what)
    except Ended as ended:
        error = ended.error
        raise AssertionError(f"{what} raised {type(error).__name__}: {error}") from error


async def outcome(seconds: float, awaitable: Awaitable[T], what: str) -> T:
    """Await it in a task of its own.

    Raises:
        Ended: it raised something.
        AssertionError: it ended as cancelled, or took longer.
    """
    task = asyncio.ensure_future(contained(awaitable, what))
    try:
        await asyncio.wait([task], timeout=seconds)
        if not task.done():
            raise AssertionError(f"{what} took longer than its deadline of {seconds:g} seconds")
        if task.cancelled():
            raise AssertionError(f"{what} raised CancelledError, though nobody cancelled it")
    finally:
        task.cancel()
    return task.result()


async def contained(awaitable: Awaitable[T], what: str) -> T:
    """Await it; raise any error but cancellation as `Ended`, because an uncaught `SystemExit` would end the loop."""
    try:
        return await awaitable
    except asyncio.CancelledError:
        raise
    except BaseException as error:
        raise Ended(what=what, error=error) from error


def texts_of(contribution: Contribution | None) -> list[str]:
    """Return the texts of a contribution that the model would see."""
    if contribution is None:
        return []
    hints = [hint.guidance for hint in contribution.hints]
    return [*contribution.blocks, *(reference.text for reference in contribution.references), *hints]


def _rendered(contribution: Contribution) -> None:
    try:
        render_references("plugin", contribution.references, boundary=BOUNDARY)
    except Exception as error:
        raise AssertionError(f"its references cannot be rendered: {type(error).__name__}: {error}") from error


def _a(kind: type[T], value: object, hook: str) -> T:
    if not isinstance(value, kind):
        raise AssertionError(f"`{hook}` answered {type(value).__name__}, not {kind.__name__}")  # noqa: TRY004 - a demand
    return value


def _nothing(hook: str, value: object) -> None:
    if value is not None:
        raise AssertionError(f"`{hook}` answered {type(value).__name__}; it is to answer nothing")


def fact(marker: str) -> str:
    """Return a unique sentence to learn."""
    return f"The heron at the weir comes on Thursday at dawn, and the keeper calls it {marker}."


def need(harness: PluginHarness, *flags: str) -> None:
    """Go on with a case only if the card says all of `flags`."""
    for flag in flags:
        if not harness.card.can(flag):
            raise Excused(flag)


def demand(met: object, sentence: str) -> None:
    """Demand that a condition is met."""
    if not met:
        raise AssertionError(sentence)


def same(expected: object, actual: object, what: str) -> None:
    """Demand that two values are equal."""
    if expected != actual:
        raise AssertionError(f"{what}: expected {expected!r}, got {actual!r}")


def shows(contribution: Contribution | None, marker: str) -> bool:
    """Whether a contribution holds a text with this marker."""
    return any(marker in text for text in texts_of(contribution))


def not_shown(contributions: Iterable[Contribution | None], marker: str, sentence: str) -> None:
    """Demand that no contribution holds a text with this marker."""
    demand(not any(shows(each, marker) for each in contributions), sentence)


async def teach(harness: PluginHarness, driven: Driven, marker: str, **fields: object) -> None:
    """Say a fact in a turn that is answered."""
    await driven.run(harness.saying(fact(marker)), **fields)  # type: ignore[arg-type]
