"""Measures the whole path: a host with the plugin, one turn per question, and the memories in the turn's receipt."""

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from attrs import validators
from kit_data import Case
from kit_engine import USER, Filled, Remembering, filled, model_home
from kit_score import Ranking

from beaver_hooks import Host
from beaver_hooks.config import Config
from beaver_hooks.config.model import HostSettings
from beaver_hooks.config.model import Memory as MemorySection
from beaver_hooks_local.plugin import Local
from beaver_hostspecs import Deadlines, Setup, hookimpl

PLUGIN = "local"


@attrs.frozen(kw_only=True)
class Hooked:
    """The results of the turns.

    Attributes:
        rankings: by question.
        milliseconds: of `before_prompt`, by turn, embedding included.
        tokens: the number that memory added to the context, by turn.
    """

    rankings: list[Ranking]
    milliseconds: list[float]
    tokens: list[float]

    @property
    def spread(self) -> tuple[float, float]:
        """The median and the 95th percentile of the milliseconds."""
        return float(np.percentile(self.milliseconds, 50)), float(np.percentile(self.milliseconds, 95))


class More(Local):
    """The plugin with ten memories per turn; its settings allow eight at most."""

    @hookimpl
    def configure(self, setup: Setup) -> Deadlines:
        """Take the settings, except the limits on the number and the tokens of a turn's memories."""
        with validators.disabled():
            recall = attrs.evolve(setup.settings.recall, top_k=10, max_tokens=20_000)
            return super().configure(attrs.evolve(setup, settings=attrs.evolve(setup.settings, recall=recall)))


def hooked(cases: Sequence[Case], embedder: Remembering | None, *, more: bool) -> Hooked:
    """Ask every question in a turn of its own, each in another session.

    Args:
        cases: the memories of each user, and the questions.
        embedder: embeds the memories; the plugin itself embeds the queries. `None` for words alone.
        more: whether a turn gets ten memories instead of the default.
    """
    found = Hooked(rankings=[], milliseconds=[], tokens=[])
    for case in cases:
        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(_asked(Path(folder) / "state", case, embedder, found, more=more))
    return found


async def _asked(state: Path, case: Case, embedder: Remembering | None, found: Hooked, *, more: bool) -> None:
    own = state / "plugins" / PLUGIN
    store = filled(own, case, [] if embedder is None else [embedder])
    section: dict[str, Any] = {"enabled": True}
    if embedder is None:
        section["embedding"] = {"provider": "none"}
    else:
        (own / "models").symlink_to(model_home().absolute() / "models")
    host = HostSettings(reference_tokens=20_000) if more else HostSettings()
    config = Config(host=host, memory=MemorySection(sections={PLUGIN: section}))
    async with Host({PLUGIN: More() if more else Local()}, config=config, state_folder=state) as running:
        for number, question in enumerate(case.questions):
            async with running.turn(question.text, session=f"asked-{number}", user=USER, trust="full") as turn:
                receipt = turn.receipt.plugins[PLUGIN]
                found.rankings.append((question.evidence, _keys(store, receipt.injected)))
                found.milliseconds.append(receipt.milliseconds["before_prompt"])
                found.tokens.append(receipt.tokens)
                assert not receipt.degraded
                await turn.commit("Noted.")
        await running.drain()


def _keys(store: Filled, injected: Sequence[str | None]) -> tuple[str, ...]:
    """Return the keys of the memories that reached the model, without the prompt index."""
    return tuple(store.ids[int(each)] for each in injected if each is not None and each.isdecimal())
