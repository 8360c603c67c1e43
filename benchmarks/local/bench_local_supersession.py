"""Measures how well memories that no longer hold are superseded, without a language model.

Each user of a made-up set states facts on consecutive days, then states each of them anew as it has changed, and then
asks about each. The older fact must not be among the memories that a turn is given, and the newer one must come first.
Pairs of facts that both hold are stated likewise, and neither may be superseded. The authors of the rules look at
the sets `seen`, `more` and `prose`, and wrote `unseen` before the rules. The authors of `foreign` and `fresh` have seen
neither the rules nor the other sets. The rules have been corrected on `foreign` since, so the figures of `fresh` alone
count. Each set is measured without reconciliation, with it, and with outdated memories left out of turns, in one run.

Where `BEAVER_BENCH_DATA` names a folder with `beam-dev.json`, it also asks that set's questions about updates and
contradictions, over the sentences of the user's messages.

    python benchmarks/local/bench_local_supersession.py [--static] [--e5]
"""

import argparse
import json
import os
import re
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import attrs
from kit_changes import Told, changes, pairs
from kit_engine import Calendar, Remembering, e5_small, static
from kit_score import Targets, heading, machine, row

from beaver_hooks_local.settings import RecallSettings
from beaver_memory.engine import MemoryEngine
from beaver_memory.filters import Filters
from beaver_memory.query import Query
from beaver_memory.reconcile.precedence import outdated
from beaver_memory.reconcile.reconciler import Reconciler
from beaver_memory.records import Memory, NewMemory, Owner
from beaver_memory.store.in_memory import InMemoryStore
from beaver_memory.views import View

NEWER_FIRST, OLDER_INJECTED, BOTH_SUPERSEDED = 0.9, 0.02, 0.01
SETS = ("seen", "more", "prose", "unseen", "foreign", "fresh")
WAYS: Mapping[str, Mapping[str, bool]] = {
    "added only": {"reconciles": False},
    "reconciled": {"reconciles": True},
    "outdated left out": {"reconciles": True, "leaves_out": True},
}
RECALL = RecallSettings()
LEAST = 0.2
"""The least score of each memory that counts as given."""


@attrs.define
class User:
    """The memory of one user, written day by day.

    Attributes:
        reconciles: whether a newer memory supersedes older ones.
    """

    name: str
    reconciles: bool
    embedder: Remembering | None = None
    clock: Calendar = attrs.field(factory=Calendar)
    engine: MemoryEngine = attrs.field(init=False)
    seconds: list[float] = attrs.field(factory=list)

    def __attrs_post_init__(self) -> None:
        """Open the memory."""
        self.engine = MemoryEngine(InMemoryStore(), clock=self.clock, embedder=self.embedder)

    def tell(self, text: str) -> None:
        """Write a fact, a day after the one before."""
        self.say(text, self.clock.time + timedelta(days=1))

    def say(self, text: str, at: datetime) -> None:
        """Write a statement that was made at a moment, not before the last one."""
        self.clock.time = max(self.clock.time, at)
        new = NewMemory(title=text, owner=Owner(user=self.name), created_at=self.clock.time, source="user")
        began = time.perf_counter()
        if self.reconciles:
            Reconciler(self.engine, clock=self.clock).remember(new)
        else:
            self.engine.remember(new)
        self.seconds.append(time.perf_counter() - began)
        self.engine.embed()

    def given(self, question: str, *, leaves_out: bool = False) -> list[str]:
        """Return the memories that a turn with a question is given, best first, with or without outdated ones."""
        query = Query(
            text=question,
            filters=Filters(view=View(owners=(Owner(user=self.name),), now=self.clock.time)),
            limit=RECALL.top_k,
            minimum_score=LEAST,
        )
        found = [hit.memory for hit in self.engine.search(query).hits]
        left_out = outdated(question, found) if leaves_out else frozenset()
        return [memory.title for memory in found if memory.id not in left_out]

    def holds(self) -> set[str]:
        """Return the memories that hold now."""
        seen = Filters(view=View(owners=(Owner(user=self.name),), now=self.clock.time))
        return {memory.title for memory in self.engine.store.recent(seen, limit=1_000)}


@attrs.frozen(kw_only=True)
class Figures:
    """The figures of one set.

    Attributes:
        first: the share of changes whose newer fact comes first.
        found: the share of changes whose newer fact is among the given memories.
        older: the share of changes whose older fact is among them.
        lost: the share of pairs of which one fact is superseded.
        hidden: the share of pairs of which the earlier fact is left out of a turn that asks in the words of both.
        milliseconds: the median time of a write.
    """

    first: float
    found: float
    older: float
    lost: float
    hidden: float
    milliseconds: float


def figures(name: str, *, reconciles: bool, embedder: Remembering | None, leaves_out: bool = False) -> Figures:
    """Tell the facts of a set to each of its users, ask, and return the figures."""
    told = list(changes(name))
    users = _told(told, reconciles=reconciles, embedder=embedder)
    answers = [(each, users[each.user].given(each.question, leaves_out=leaves_out)) for each in told]
    both = list(pairs(name))
    others = _told(both, reconciles=reconciles, embedder=embedder)
    hold = {name: user.holds() for name, user in others.items()}
    return Figures(
        first=_share(given[:1] == [each.second] for each, given in answers),
        found=_share(each.second in given for each, given in answers),
        older=_share(each.first in given for each, given in answers),
        lost=_share(not {each.first, each.second} <= hold[each.user] for each in both),
        hidden=_share(leaves_out and _hidden(each) for each in both),
        milliseconds=1_000 * statistics.median(each for user in users.values() for each in user.seconds),
    )


def _hidden(pair: Told) -> bool:
    """Return whether the first fact of a pair is left out beside the second one, asked for in the words of both."""
    when = datetime(2026, 1, 1, tzinfo=UTC)
    one, other = (
        Memory(id=number, hash="", title=text, created_at=when + timedelta(days=number), updated_at=when)
        for number, text in enumerate((pair.first, pair.second))
    )
    # Chinese is written without spaces.
    parts = pair.first.split() if " " in pair.first else [*pair.first]
    return one.id in outdated(" ".join(part for part in parts if part in pair.second), [one, other])


def _told(facts: Sequence[Told], *, reconciles: bool, embedder: Remembering | None) -> Mapping[str, User]:
    """Return the users after they have told all first facts, and then all second ones."""
    users = {each.user: User(each.user, reconciles, embedder) for each in facts}
    first: Callable[[Told], str] = lambda each: each.first  # noqa: E731 - the two passes differ by this alone
    for text_of in (first, lambda each: each.second):
        for each in facts:
            users[each.user].tell(text_of(each))
    return users


# --- BEAM -----------------------------------------------------------------------------------------------------------

BEAM = "beam-dev.json"
TYPES = ("knowledge_update", "contradiction_resolution")
_CODE = re.compile(r"```.*?(?:```|$)", re.DOTALL)
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
SHORTEST = 20
"""Characters of a sentence that is kept."""


def beam() -> None:
    """Print how questions about updates and contradictions fare with reconciliation and without it."""
    path = Path(os.environ.get("BEAVER_BENCH_DATA", "")) / BEAM
    if not path.is_file():
        print(f"BEAM is left out: BEAVER_BENCH_DATA names no folder with {BEAM}.")
        return
    raw = path.read_bytes()
    chats = json.loads(raw)
    print(f"\nBEAM: {len(chats)} chats, sha256 {sha256(raw).hexdigest()[:16]}; sentences of the user, by words")
    heading("", ("n", "frac@6", "newest", "first", "ended", "sentences"))
    for reconciles in (False, True):
        asked: dict[str, list[tuple[float, bool, bool]]] = {each: [] for each in TYPES}
        ended = total = 0
        for chat in chats:
            user, keys = _chat(chat, reconciles=reconciles)
            total += len(keys)
            ended += len(keys) - len(user.holds() & keys.keys())
            for question in chat["questions"]:
                if question["type"] in TYPES and question["evidence"]:
                    given = list(dict.fromkeys(keys[text] for text in user.given(question["question"])))
                    asked[question["type"]].append(_evidence(given, question["evidence"]))
        for name, found in asked.items():
            figures_of = [statistics.mean(map(float, column)) for column in zip(*found, strict=True)]
            cells = [f"{len(found)}", *figures_of, f"{ended}", f"{total}"]
            row(f"{name}, {'reconciled' if reconciles else 'added only'}", cells)


def _chat(chat: Mapping[str, Any], *, reconciles: bool) -> tuple[User, dict[str, str]]:
    """Return the user of a chat, and the message of each sentence."""
    user, keys = User(chat["id"], reconciles), {}
    for message in chat["messages"]:
        if message["role"] == "user":
            for sentence in _SENTENCE.split(_CODE.sub(" ", message["text"])):
                text = " ".join(sentence.split())
                if len(text) >= SHORTEST and text not in keys:
                    keys[text] = message["id"]
                    user.say(text, datetime.fromisoformat(message["when"]))
    return user, keys


def _evidence(given: Sequence[str], evidence: Sequence[str]) -> tuple[float, bool, bool]:
    """Return the share of the evidence that is given, and whether its newest piece is given, and first of it."""
    newest = max(evidence, key=int)
    seen = [each for each in given if each in evidence]
    return len(seen) / len(evidence), newest in seen, seen[:1] == [newest]


def _share(values: Iterable[bool]) -> float:
    return statistics.mean(map(float, values))


def main() -> int:
    """Print the figures of all sets; return 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--static", action="store_true", help="measure with the static model too")
    parser.add_argument("--e5", action="store_true", help="measure with e5-small too")
    options = parser.parse_args()
    embedders: dict[str, Remembering | None] = {"words": None}
    for name, make in (("static", static), ("e5", e5_small)):
        if getattr(options, name) and (made := make()) is not None:
            embedders[name] = made
    print(machine("beaver-memory"))
    for name in SETS:
        kinds = Counter(each.kind for each in (*changes(name), *pairs(name)))
        print(f"{name}: " + ", ".join(f"{kind} {count}" for kind, count in kinds.items()))
    targets = Targets()
    for name, embedder in embedders.items():
        heading(
            f"{name}: {RECALL.top_k} memories a turn, minimum score {LEAST:g}",
            ("first", "found", "older", "lost", "hidden", "ms/write"),
        )
        for made_up in SETS:
            for how, options_of in WAYS.items():
                found = figures(made_up, embedder=embedder, **options_of)
                row(f"{made_up}, {how}", attrs.astuple(found))
        print("Of the fresh set, reconciled, outdated ones left out:")
        targets.least(f"newer first, {name}", found.first, NEWER_FIRST)
        targets.least(f"older not injected, {name}", 1 - found.older, 1 - OLDER_INJECTED)
        targets.least(f"both still hold, {name}", 1 - found.lost, 1 - BOTH_SUPERSEDED)
    beam()
    return int(bool(targets.missed))


if __name__ == "__main__":
    raise SystemExit(main())
