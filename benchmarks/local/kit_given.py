"""Asks questions as turns of a host, and measures what each turn is given; and what a host costs that does nothing."""

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
from attrs import validators
from kit_data import Case, Question
from kit_engine import USER, Filled, Remembering, filled, model_home

from beaver_hooks import Host
from beaver_hooks.config import Config
from beaver_hooks.config.model import HostSettings
from beaver_hooks.config.model import Memory as MemorySection
from beaver_hooks_local.plugin import Local
from beaver_hooks_local.recall.index_contents import KIND
from beaver_hostspecs import Contribution, Deadlines, Report, Setup, Turn, hookimpl
from beaver_hostspecs.rendering import render_references

PLUGIN = "local"
PLENTY = 20_000
COLD = """
import asyncio, json, sys, time
began = time.perf_counter()
from pathlib import Path
from kit_given import host_over
from beaver_hooks_local.plugin import Local

async def main():
    async with host_over(Path(sys.argv[1]), Local(), json.loads(sys.argv[2])) as running:
        async with running.turn(sys.argv[3], session="cold", user="u", trust="full") as turn:
            print(time.perf_counter() - began, time.process_time())
            await turn.drop("cancelled")

asyncio.run(main())
"""


@attrs.frozen(kw_only=True)
class Given:
    """What a turn is given.

    Attributes:
        evidence: the keys of the memories that answer the question.
        keys: of the given ones, best first.
        tokens: of the message that shows them.
        index: the tokens that the prompt index adds.
        system: the system prompt.
    """

    evidence: tuple[str, ...]
    keys: tuple[str, ...]
    tokens: float
    index: float
    system: str = ""


class Watched(Local):
    """The plugin, with the last contribution that it made."""

    last: Contribution | None = None

    @hookimpl
    async def before_prompt(self, turn: Turn, report: Report) -> Contribution | None:
        """Recall memories for a turn, and keep them."""
        self.last = await super().before_prompt(turn, report)
        return self.last


class AlwaysSix(Watched):
    """The plugin with the six best memories in each turn, whatever their scores."""

    @hookimpl
    def configure(self, setup: Setup) -> Deadlines:
        """Take the settings, except those on the number and the tokens of a turn's memories."""
        more = {"top_k": 6, "minimum_score": 0.0, "share_of_best": 0.0, "max_tokens": PLENTY}
        with validators.disabled():
            recall = attrs.evolve(setup.settings.recall, **more)
            return super().configure(attrs.evolve(setup, settings=attrs.evolve(setup.settings, recall=recall)))


@attrs.frozen(kw_only=True)
class Place:
    """A state folder with the memories of a case."""

    state: Path
    store: Filled
    section: Mapping[str, Any]

    def asked(self, questions: Sequence[Question], plugin: Watched) -> list[Given]:
        """Return what each question is given, each in a session of its own."""
        return asyncio.run(self._asked(questions, plugin))

    async def _asked(self, questions: Sequence[Question], plugin: Watched) -> list[Given]:
        found = []
        async with host_over(self.state, plugin, self.section) as running:
            for number, question in enumerate(questions):
                async with running.turn(question.text, session=f"asked-{number}", user=USER, trust="full") as turn:
                    found.append(self._given(question, plugin, turn.system_prompt("base")))
                    await turn.commit("Noted.")
            await running.drain()
        return found

    def _given(self, question: Question, plugin: Watched, system: str) -> Given:
        references = () if plugin.last is None else tuple(plugin.last.references)
        memories = tuple(each for each in references if each.kind != KIND)
        keys = tuple(self.store.ids[int(each.id or 0)] for each in memories)
        every, some = (_tokens(each) for each in (references, memories))
        return Given(evidence=question.evidence, keys=keys, tokens=some, index=every - some, system=system)


def place(folder: Path, case: Case, embedder: Remembering | None) -> Place:
    """Return a state folder with the memories of a case, and with the model if there is an embedder."""
    own = folder / "plugins" / PLUGIN
    store = filled(own, case, [] if embedder is None else [embedder])
    section: dict[str, Any] = {"enabled": True, "capture": {"enabled": False}}
    if embedder is None:
        section["embedding"] = {"provider": "none"}
    else:
        (own / "models").symlink_to(model_home().absolute() / "models")
    return Place(state=folder, store=store, section=section)


def host_over(state: Path, plugin: Local, section: Mapping[str, Any]) -> Host:
    """Return a host with the plugin over a state folder."""
    config = Config(host=HostSettings(reference_tokens=PLENTY), memory=MemorySection(sections={PLUGIN: dict(section)}))
    return Host({PLUGIN: plugin}, config=config, state_folder=state)


def changed_bytes(turns: Sequence[Given]) -> int:
    """Return how many bytes of the system prompt differ between turns, at most."""
    first = turns[0].system.encode()
    return max(
        abs(len(first) - len(other)) + sum(one != two for one, two in zip(first, other, strict=False))
        for other in (each.system.encode() for each in turns)
    )


def idle_seconds(at: Place, seconds: float) -> float:
    """Return the seconds of processor time that a host takes in a minute without turns."""
    return asyncio.run(_idle(at, seconds)) * 60 / seconds


async def _idle(at: Place, seconds: float) -> float:
    async with host_over(at.state, Local(), at.section) as running:
        async with running.turn("Hello there?", session="idle", user=USER, trust="full") as turn:
            await turn.commit("Noted.")
        await running.drain()
        await asyncio.sleep(1)
        began = time.process_time()
        await asyncio.sleep(seconds)
        return time.process_time() - began


def cold_seconds(at: Place, question: str) -> tuple[float, float]:
    """Return the seconds from the start of the imports to the first references in a new process.

    The second figure is the processor time, with the start of the interpreter.
    """
    command = [sys.executable, "-c", COLD, str(at.state), json.dumps(dict(at.section)), question]
    done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=True)
    clock, processor = map(float, done.stdout.split()[-2:])
    return clock, processor


def temporary() -> "tempfile.TemporaryDirectory[str]":
    """Return a folder that is removed afterwards."""
    return tempfile.TemporaryDirectory()


def _tokens(references: Sequence[Any]) -> float:
    made = render_references(PLUGIN, references, boundary="a" * 16)
    return 0.0 if made is None else float(made.tokens)
