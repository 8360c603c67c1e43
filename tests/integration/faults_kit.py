"""Runs one turn beside a plugin that misbehaves, and keeps everything that can be compared or searched for leaks."""

import asyncio
import contextlib
import json
import logging
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Self

import attrs
import pytest

from beaver_hooks import Host, OpenTurn
from beaver_hooks.audit.events import AuditEvent
from beaver_hooks.config import Config
from beaver_hooks.config.model import HostSettings
from beaver_hooks.plugins.entry_points import installed
from beaver_hostspecs import Contribution, Deadlines, Hint, PluginInfo, Reference, Tool
from beaver_hostspecs.testing import COROUTINE_HOOKS, Fault, FaultPlugin, HookedPlugin, RecordingPlugin, fault_cases

SESSION = "session-of-the-matrix"
PROMPT = "What did the cartographer of Ulm decide?"
DEADLINE = 0.2
"""Seconds that the plugin under test has for the hook in which it misbehaves."""

PATIENCE = 0.3
"""Seconds after which a blocked loop is noticed, in the runs that block it."""

NEVER_BLOCKED = 60.0
"""The same for all other runs: a slow machine must not look like a blocking plugin."""

HANGING = frozenset({Fault.AWAIT_FOREVER, Fault.SLOW_CLEANUP, Fault.SWALLOW_CANCEL})
"""Faults that only the deadline ends."""

LOADING_HOOKS = ("describe", "configure", "provide_tools", "provide_commands", "start")
"""Hooks that are called while the plugin is loaded."""

UNHOSTED_HOOKS = ("provide_backup", "subject_data")
"""Hooks by which commands ask plugins without a host; see `test_cli_backup` and `test_cli_subject`."""

TURN_CASES = tuple(case for case in fault_cases() if case[1] not in (*LOADING_HOOKS, "stop", *UNHOSTED_HOOKS))
LOADING_CASES = tuple(case for case in fault_cases() if case[1] in LOADING_HOOKS)
STOP_CASES = tuple(case for case in fault_cases() if case[1] == "stop")
BACKUP_CASES = tuple(case for case in fault_cases() if case[1] == "provide_backup")
SUBJECT_CASES = tuple(case for case in fault_cases() if case[1] == "subject_data")


async def _run_nothing(*_: object) -> object:
    return None


CONTRIBUTION = Contribution(
    blocks=("The user writes British English.",),
    references=(
        Reference(text="We met at noon and chose PostgreSQL.", id="r1", score=0.9),
        Reference(text="The map hangs in the hall.", id="r2", kind="resource", source="notes"),
    ),
    hints=(Hint(tool="search", registry="tools", fingerprint="f1", guidance="Quote names."),),
)


def good_plugin() -> RecordingPlugin:
    """Return a plugin that contributes blocks, references, hints, rules and a tool."""
    info = PluginInfo(version="1", contract="1.0", rules=("Use what you know.",))
    tool = Tool(name="recall", description="Recalls.", parameters={}, run=_run_nothing)
    return RecordingPlugin(CONTRIBUTION, [tool], info)


def impatient_info(hook: str) -> PluginInfo:
    """Return a description with a short deadline for a hook: on a busy machine the others may take longer."""
    short = {hook: DEADLINE} if hook in COROUTINE_HOOKS else {}
    return PluginInfo(version="0", contract="1.0", deadlines=Deadlines(**short))


class Sink:
    """Keeps audit events, and calls back at each of them."""

    def __init__(self, heard: Callable[[AuditEvent], object] = lambda _: None) -> None:
        self.events: list[AuditEvent] = []
        self._heard = heard

    def append(self, event: AuditEvent) -> None:
        self.events.append(event)
        self._heard(event)

    def names(self) -> Counter[tuple[str, str | None]]:
        """Return how often each event happened to each plugin."""
        return Counter((event.name, event.plugin) for event in self.events)


class Witness(logging.Handler):
    """Keeps every log line of the process, formatted with its traceback, and every complaint of the event loop."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.setFormatter(logging.Formatter("%(levelname)s %(name)s %(message)s %(args)r"))
        self.lines: list[str] = []
        self.complaints: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))

    def __enter__(self) -> Self:
        self._root, self._level = logging.getLogger(), logging.getLogger().level
        self._root.addHandler(self)
        self._root.setLevel(logging.DEBUG)
        self._loop = asyncio.get_running_loop()
        self._loop.set_exception_handler(lambda _, context: self.complaints.append(str(context)))
        return self

    def __exit__(self, *_: object) -> None:
        self._root.removeHandler(self)
        self._root.setLevel(self._level)
        self._loop.set_exception_handler(None)


@attrs.frozen(kw_only=True)
class Outcome:
    """What a run showed.

    Attributes:
        rendered: everything that the model would see, as bytes.
        events: audit events by name and plugin.
        states: each plugin's health state and its failures in a row.
        left: tasks that were still there after the work was drained.
        complaints: what the event loop's exception handler was called with.
        texts: everything that was written down or shown, by where it was found.
    """

    rendered: bytes
    events: Counter[tuple[str, str | None]]
    states: Mapping[str, tuple[str, int]]
    left: int
    complaints: tuple[str, ...]
    texts: Mapping[str, str | bytes]


def rendered(turn: OpenTurn) -> bytes:
    """Return everything that the model sees of a turn, as bytes."""
    hints = [attrs.asdict(hint) for hint in turn.hints]
    messages = [attrs.asdict(message) for message in turn.references]
    return json.dumps([turn.system_prompt("You help."), messages, hints]).encode()


def boundary() -> str:
    """Return the same boundary for every turn."""
    return "boundary-of-the-matrix"


def release_when_blamed(plugin: HookedPlugin) -> Callable[[AuditEvent], object]:
    """Return a listener that frees a blocked loop as soon as the host has named the plugin that blocks it."""

    def heard(event: AuditEvent) -> None:
        if event.name == "event_loop_blocked" and isinstance(plugin, FaultPlugin):
            plugin.release()

    return heard


def settings_for(plugin: HookedPlugin) -> HostSettings:
    """Return settings under which only a plugin that is meant to block the loop can be named for it."""
    blocks = isinstance(plugin, FaultPlugin) and plugin.fault is Fault.BLOCK
    return HostSettings(blocked_after_seconds=PATIENCE if blocks else NEVER_BLOCKED)


def host_of(plugin: HookedPlugin, folder: Path, sink: Sink, *, fail_closed: bool = False) -> Host:
    """Return a host with the plugin under test between two good ones."""
    return Host(
        {"good": good_plugin(), "faulty": plugin, "last": RecordingPlugin()},
        fail_closed=["faulty"] if fail_closed else [],
        config=Config(host=settings_for(plugin)),
        state_folder=folder,
        sinks=[sink],
        boundary=boundary,
    )


@contextlib.contextmanager
def announced(**plugins: object) -> Iterator[None]:
    """Announce plugin objects as installed distributions, each by an entry point of its name."""
    with pytest.MonkeyPatch.context() as patch:
        for name, plugin in plugins.items():
            module = ModuleType(f"announced_{name}")
            module.make = lambda plugin=plugin: plugin  # type: ignore[attr-defined]
            patch.setitem(sys.modules, module.__name__, module)
        yield


def write_distributions(folder: Path, *names: str) -> None:
    """Write the metadata of one distribution per plugin into `folder`: first on the path, it hides an installed one."""
    for name in names:
        info = folder / f"beaver_hooks_{name}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: beaver-hooks-{name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[beaver_hooks]\n{name} = announced_{name}:make\n")


def write_config(folder: Path, plugin: HookedPlugin) -> Path:
    """Write a configuration of mode `curated` that leaves out whatever else is installed on this machine."""
    folder.mkdir(parents=True)
    raw = {
        "memory": {"mode": "curated"},
        "plugins": {"disabled": sorted(installed().keys() - {"curated"})},
        "host": {"blockedAfterSeconds": settings_for(plugin).blocked_after_seconds, "stateFolder": "state"},
    }
    path = folder / "config.json"
    path.write_text(json.dumps(raw))
    return path


@contextlib.contextmanager
def loaded_host(plugin: HookedPlugin, folder: Path, sink: Sink) -> Iterator[Host]:
    """Give a host that loads the plugin under test, not required, beside a required `curated` and a third one."""
    config = write_config(folder, plugin)
    write_distributions(folder / "site", "curated", "faulty", "last")
    with (
        pytest.MonkeyPatch.context() as patch,
        announced(curated=good_plugin(), faulty=plugin, last=RecordingPlugin()),
    ):
        patch.syspath_prepend(folder / "site")
        yield Host.from_config(config, sinks=[sink], boundary=boundary, environment={})


async def whole_turn(host: Host, *, drop: bool = False) -> OpenTurn:
    """Run a turn with one tool result to its end, its background work included."""
    turn = await host.open_turn(PROMPT, session=SESSION)
    await turn.tool_result(tool="search", call_id="call-1", output="a note", arguments={"q": "Ulm"})
    await (turn.drop("blocked") if drop else turn.commit("He moved the river."))
    assert await host.drain(30) == 0
    return turn


def other_tasks() -> set["asyncio.Task[Any]"]:
    """Return every task but the one that asks."""
    return asyncio.all_tasks() - {asyncio.current_task()}  # type: ignore[arg-type]


async def lingering() -> set["asyncio.Task[Any]"]:
    """Return the other tasks that do not end within a moment."""
    if tasks := other_tasks():
        await asyncio.wait(tasks, timeout=0.05)
    return other_tasks()


async def released(plugin: HookedPlugin) -> None:
    """Let the abandoned calls end, and see that they do, long before the slow clean-up would have ended by itself."""
    if isinstance(plugin, FaultPlugin):
        await plugin.release()
    if tasks := other_tasks():
        await asyncio.wait(tasks, timeout=30)
    assert other_tasks() == set()


def on_disk(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield every file below a folder with its bytes; files may vanish meanwhile."""
    for path in sorted(folder.rglob("*")):
        with contextlib.suppress(FileNotFoundError, IsADirectoryError):
            yield path.name, path.read_bytes()


def texts_of(host: Host, turn: OpenTurn, sink: Sink, witness: Witness) -> dict[str, str | bytes]:
    """Return everything that the host shows of itself."""
    return {
        "health": " ".join(f"{health} {health!r}" for health in host.health().values()),
        "receipt": repr(turn.receipt),
        "events": repr(sink.events),
        "log": "\n".join(witness.lines),
        "complaints": "\n".join(witness.complaints),
        "host": repr([host, vars(host), vars(host._running()), host.plugins, host.tools, host.commands]),
    }


async def _observe(
    host: Host,
    plugin: HookedPlugin,
    folder: Path,
    sink: Sink,
    *,
    drop: bool = False,
    compact: bool = False,
    unregister: bool = False,
) -> Outcome:
    with Witness() as witness:
        await host.open()
        turn = await whole_turn(host, drop=drop)
        if compact:
            await host.before_compaction(session=SESSION)
        if unregister:
            await host.unregister("faulty")
        left = len(await lingering())
        await released(plugin)
        kept = await host.receipt(turn.id)
        texts = texts_of(host, turn, sink, witness) | {"kept": repr(kept), "turn": repr(turn)}
        texts |= on_disk(folder)
        states = {name: (each.state, each.consecutive_failures) for name, each in host.health().items()}
        await host.close()
        texts |= {f"closed {name}": data for name, data in on_disk(folder)}
    return Outcome(
        rendered=rendered(turn),
        events=sink.names(),
        states={name: state for name, state in states.items() if state[0] != "disabled"},
        left=left,
        complaints=tuple(witness.complaints),
        texts=texts,
    )


async def run_registered(plugin: HookedPlugin, folder: Path, **then: bool) -> Outcome:
    """Run a turn in a host to which the plugin was given as an object; `then` says what else happens."""
    sink = Sink(release_when_blamed(plugin))
    async with releasing(plugin):
        return await _observe(host_of(plugin, folder, sink), plugin, folder, sink, **then)


async def run_loaded(plugin: HookedPlugin, folder: Path) -> Outcome:
    """Run a turn in a host that found the plugin by its entry point."""
    sink = Sink(release_when_blamed(plugin))
    with loaded_host(plugin, folder, sink) as host:
        async with releasing(plugin):
            return await _observe(host, plugin, folder, sink)


@contextlib.asynccontextmanager
async def opened(host: Host, *plugins: HookedPlugin) -> AsyncIterator[Host]:
    """Open a host, and let everything that the plugins hold end before it is closed."""
    async with host, releasing(*plugins):
        yield host


@contextlib.asynccontextmanager
async def releasing(*plugins: HookedPlugin) -> AsyncIterator[None]:
    """Let everything that the plugins hold end on the way out, whatever happens: no test waits for it otherwise."""
    try:
        yield
    finally:
        for plugin in plugins:
            if isinstance(plugin, FaultPlugin):
                plugin.release()
        await lingering()


def faulty(folder: Path, fault: Fault, hook: str) -> str:
    """Return the code of a plugin that fails at a hook, after storing a file in the folder of its state."""
    folder.mkdir()
    (folder / "notes").write_text("kept")
    return f"""
        from beaver_hostspecs.testing import Fault, FaultPlugin
        Plugin = lambda: FaultPlugin(Fault("{fault.value}"), "{hook}")
    """
