"""Compares local memory with its peers: quality and speed, all with the same vectors and in one run.

The peers of `peers.txt` get an environment of their own below `build/`, and a process each. All engines get the same
vectors, embedded once: those of e5-small, and for quality also those of wordllama. No figure includes embedding. The
benchmark gives each memory to all engines before the next one. It asks the questions in blocks over several rounds, and
the median of each question counts, so that noise of the machine affects all engines alike. The order of the engines
changes. The time is that of each engine's own call, without the transfer to its process.

1. Quality: each conversation of LoCoMo is one user; each turn is one memory `[date] speaker: text`. The local memory
   also gets session, speaker and time as fields, and in a second run the line alone. The output has n and the file's
   hash.
2. Speed: one user has 10,000 memories. They are those turns and copies of them with other words added; the vectors of
   the copies are those of the turns with noise. An add of the local memory is durable and includes its vector.

    BEAVER_BENCH_DATA=... python benchmarks/local/bench_local_peers.py [speed]

Args: `speed` leaves quality out.
"""

import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

import attrs
import numpy as np
from kit_data import Case, Conversation, Item, Question, line_only, locomo, with_fields
from kit_engine import OWNER, USER, Remembering, asked, e5_small, memory, static, stores
from kit_peers import PeerFailed, PeerProcess, environment
from kit_score import Ranking, Targets, any_at, flat, frac_at, heading, machine, noise, row

from beaver_memory.embedding.protocol import Identity
from beaver_memory.engine import MemoryEngine
from beaver_memory.filters import Filters
from beaver_memory.query import Query
from beaver_memory.views import View

NAMES = ("mem0", "langgraph", "yantrikdb")
SIZE = int(os.environ.get("BEAVER_BENCH_PEERS_SIZE", "10000"))
TIMED_ADDS = 1_000
SEARCHES = 200
BLOCK = 50
ROUNDS = 3
WARM = 5
K = 10
BETTER_THAN_MEM0, BETTER_THAN_YANTRIKDB = 1.5, 1.2
FASTER_THAN_MEM0, FASTER_THAN_LANGGRAPH = 120.0, 22.0
OURS = "beaver"
SEED = 20261118
_PEOPLE = [
    "Anna", "Boris", "Chiara", "Derek", "Elif", "Farid", "Greta", "Hassan",
    "Ingrid", "Jonas", "Keiko", "Lorenzo", "Mina", "Nadia", "Oscar", "Priya",
]  # fmt: skip
_CITIES = [
    "Lisbon", "Oslo", "Turin", "Ghent", "Porto", "Riga", "Bergen", "Lyon",
    "Graz", "Split", "Bilbao", "Aarhus", "Cork", "Leeds", "Malmo", "Brno",
]  # fmt: skip
_THINGS = [
    "bicycle", "piano", "telescope", "kayak", "sofa", "camera", "drone", "tent",
    "laptop", "guitar", "oven", "watch", "printer", "lamp", "desk", "rug",
]  # fmt: skip
_COLOURS = ["red", "blue", "green", "black", "white", "yellow", "purple", "orange", "silver", "brown"]


class Given:
    """An embedder that returns precomputed vectors."""

    def __init__(self, identity: Identity) -> None:
        self.identity = identity
        self.vectors: dict[str, np.ndarray] = {}

    def embed_query(self, text: str) -> np.ndarray:
        """Return the vector of a query."""
        return self.vectors[text]

    def embed_passages(self, texts: Sequence[str]) -> np.ndarray:
        """Return the vectors of passages."""
        return np.stack([self.vectors[text] for text in texts])

    def close(self) -> None:
        """Do nothing."""


@attrs.define
class Peers:
    """The running peers. A peer that fails is left out from then on, with a printed line."""

    running: list[PeerProcess] = attrs.field(factory=list)

    @classmethod
    def started(cls, stack: ExitStack, python: Path | None, folder: Path, dimensions: int) -> "Peers":
        """Start the peers."""
        found = cls()
        for name in NAMES if python is not None else ():
            assert python is not None
            try:
                found.running.append(stack.enter_context(PeerProcess(name, python, folder / name, dimensions)))
            except PeerFailed as error:
                print(f"{name} is left out: {error}")
        return found

    def without(self, peer: PeerProcess, error: PeerFailed) -> None:
        """Leave a peer out."""
        print(f"{peer.name} is left out from here on: {error}")
        self.running.remove(peer)


# --- Quality --------------------------------------------------------------------------------------------------------


def quality(
    python: Path | None, conversations: Sequence[Conversation], vectors: str, embedder: Remembering, targets: Targets
) -> None:
    """Print the quality of all engines with the same vectors, and whether the local memory meets its targets."""
    found = _ours(conversations, embedder)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        peers = Peers.started(stack, python, Path(folder), embedder.identity.dimensions)
        versions = {peer.name: peer.version for peer in peers.running}
        found |= _theirs(peers, [line_only(each) for each in conversations], embedder)
    title = f"Quality with the vectors of {vectors}, n = {len(found[OURS])} questions"
    heading(f"{title}; +- is half of the 95 % interval", ("frac@10", "+-", "any@10"))
    for name, each in found.items():
        row(versions.get(name, name), (frac_at(each, K), noise(each), any_at(each, K)))
    ours = frac_at(found[OURS], K)
    for name, least in (("mem0", BETTER_THAN_MEM0), ("yantrikdb", BETTER_THAN_YANTRIKDB)):
        if name in found:
            targets.least(f"{vectors}: frac@10, times that of {name}", ours / frac_at(found[name], K), least)


def _ours(conversations: Sequence[Conversation], embedder: Remembering) -> dict[str, list[Ranking]]:
    found = {}
    for name, make in ((OURS, with_fields), (f"{OURS}, line only", line_only)):
        with stores([make(each) for each in conversations], [embedder]) as filled:
            found[name] = flat(asked(filled, embedder))
            if make is with_fields:
                found[f"{OURS}, words only"] = flat(asked(filled))
    return found


def _theirs(peers: Peers, cases: Sequence[Case], embedder: Remembering) -> dict[str, list[Ranking]]:
    found: dict[str, list[Ranking]] = {}
    for peer in list(peers.running):
        try:
            found[peer.name] = [ranking for case in cases for ranking in _rankings(peer, case, embedder)]
        except PeerFailed as error:
            peers.without(peer, error)
    return found


def _rankings(peer: PeerProcess, case: Case, embedder: Remembering) -> Iterator[Ranking]:
    for item in case.items:
        peer.add(case.name, item.key, item.text, embedder.embed_passages([item.text])[0])
    for question in case.questions:
        vector = embedder.embed_query(question.text)
        yield question.evidence, peer.search(case.name, question.text, vector, K)[0]


# --- Speed ----------------------------------------------------------------------------------------------------------


def speed(python: Path | None, cases: Sequence[Case], e5: Remembering, targets: Targets) -> None:
    """Print the speed of adding and searching of all engines, and whether the local memory meets its targets."""
    given = Given(e5.identity)
    items = list(_items(cases, e5, given, SIZE))
    texts = [question.text for case in cases for question in case.questions]
    questions = random.Random(SEED).sample(texts, min(SEARCHES, len(texts)))
    given.vectors |= {text: e5.embed_query(text) for text in questions}
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        peers = Peers.started(stack, python, Path(folder), e5.identity.dimensions)
        versions = {peer.name: peer.version for peer in peers.running}
        engine = stack.enter_context(MemoryEngine.open(Path(folder) / "ours", embedder=given))
        adds = _added(peers, engine, items, given)
        searches = _searched(peers, engine, questions, given)
    title = f"Speed in ms: {SIZE:,} memories of one user, the last {TIMED_ADDS} adds, {len(questions)} searches"
    heading(f"{title} (each the median of {ROUNDS})", ("add p50", "add p95", "find p50", "find p95"))
    for name in searches:
        row(versions.get(name, name), [value for each in (adds, searches) for value in _spread(each[name])])
    ours = _spread(searches[OURS])[1]
    for name, least in (("mem0", FASTER_THAN_MEM0), ("langgraph", FASTER_THAN_LANGGRAPH)):
        # The targets apply to 10,000 memories.
        if name in searches and SIZE >= 10_000:
            targets.least(f"search p95 of {name}, times ours", _spread(searches[name])[1] / ours, least)


def _made_up() -> Case:
    """Return similar facts about people, the same in every run."""
    dice = random.Random(SEED)
    items, questions = [], []
    for number, (person, thing) in enumerate((person, thing) for person in _PEOPLE for thing in _THINGS):
        city, colour = dice.choice(_CITIES), dice.choice(_COLOURS)
        text = f"{person} bought a {colour} {thing} in {city} for {dice.randrange(40, 900)} euros."
        items.append(Item(key=f"f{number}", text=text))
        if number % 2:
            asked = dice.choice((f"Where did {person} buy the {thing}?", f"What colour is {person}'s {thing}?"))
            questions.append(Question(text=asked, evidence=(f"f{number}",)))
    return Case(name="similar facts", items=tuple(items), questions=tuple(questions))


def _items(cases: Sequence[Case], e5: Remembering, given: Given, count: int) -> Iterator[Item]:
    """Return turns, followed by copies of them with other words and a similar vector, up to the wanted number."""
    dice, noisy = random.Random(SEED), np.random.default_rng(SEED)
    plain = [item for case in cases for item in case.items]
    for number in range(count):
        item, copy = plain[number % len(plain)], number // len(plain)
        vector = e5.embed_passages([item.text])[0]
        text = item.text
        if copy:
            words = ("".join(dice.choices("abcdefghijklmnoprstuvwy", k=dice.randrange(4, 9))) for _ in range(6))
            text = f"{text} {' '.join(words)}"
            vector = vector + 0.3 * noisy.normal(size=len(vector)) / len(vector) ** 0.5
            vector = (vector / np.linalg.norm(vector)).astype("f4")
        given.vectors[text] = vector
        yield attrs.evolve(item, key=str(number), text=text, session=f"{number // 20}", when=None)


def _added(peers: Peers, engine: MemoryEngine, items: Sequence[Item], given: Given) -> dict[str, list[float]]:
    """Add each item to all engines, one item after the other; return the milliseconds of the last adds."""
    spent: dict[str, list[float]] = {OURS: [], **{peer.name: [] for peer in peers.running}}
    for number, item in enumerate(items):
        for peer in _in_turn(peers.running, number):
            if peer is None:
                began = time.perf_counter()
                engine.add(memory(item))
                engine.embed(limit=1, owners=(OWNER,))
                spent[OURS].append((time.perf_counter() - began) * 1e3)
                continue
            try:
                spent[peer.name].append(peer.add(USER, item.key, item.text, given.vectors[item.text]))
            except PeerFailed as error:
                peers.without(peer, error)
    return {name: each[-TIMED_ADDS:] for name, each in spent.items()}


def _searched(peers: Peers, engine: MemoryEngine, questions: Sequence[str], given: Given) -> dict[str, list[float]]:
    """Ask all engines every question, in blocks and several rounds; return each question's median in milliseconds."""
    spent: dict[str, list[list[float]]] = {}
    blocks = [questions[start : start + BLOCK] for start in range(0, len(questions), BLOCK)]
    for number in range(ROUNDS * len(blocks)):
        block = blocks[number % len(blocks)]
        for peer in _in_turn(peers.running, number):
            try:
                each = _ours_of(engine, block) if peer is None else _theirs_of(peer, block, given)
            except PeerFailed as error:
                assert peer is not None
                peers.without(peer, error)
                continue
            spent.setdefault(OURS if peer is None else peer.name, []).append(each)
    return {name: _medians(each, len(blocks)) for name, each in spent.items() if len(each) == ROUNDS * len(blocks)}


def _ours_of(engine: MemoryEngine, block: Sequence[str]) -> list[float]:
    filters = Filters(view=View(owners=(OWNER,), now=datetime.now(UTC) + timedelta(days=1)))
    spent = []
    for text in [*block[:WARM], *block]:
        began = time.perf_counter()
        answer = engine.search(Query(text=text, filters=filters, limit=K))
        spent.append((time.perf_counter() - began) * 1e3)
        assert answer.hits
        assert answer.keyword_only is None
    return spent[WARM:]


def _theirs_of(peer: PeerProcess, block: Sequence[str], given: Given) -> list[float]:
    spent = [peer.search(USER, text, given.vectors[text], K)[1] for text in [*block[:WARM], *block]]
    return spent[WARM:]


def _medians(blocks: Sequence[Sequence[float]], count: int) -> list[float]:
    """Return each question's median over the rounds, because other work on the machine affects only a few rounds."""
    return [float(np.median(each)) for place in range(count) for each in zip(*blocks[place::count], strict=True)]


def _in_turn(running: Sequence[PeerProcess], number: int) -> list[PeerProcess | None]:
    """Return the peers, and `None` for the local memory; each call begins with another one."""
    everybody = [None, *running]
    first = number % len(everybody)
    return everybody[first:] + everybody[:first]


def _spread(samples: Sequence[float]) -> tuple[float, float]:
    return float(np.percentile(samples, 50)), float(np.percentile(samples, 95))


def main() -> int:
    """Measure, print, and return 1 if a target is missed."""
    print(machine("numpy", "apsw", "onnxruntime", "beaver-hooks-local"))
    e5 = e5_small()
    if e5 is None:
        print("Nothing is compared: everybody is to have the same vectors, and there are none.")
        return 0
    python, found, targets = environment(), locomo(), Targets()
    if found is not None:
        print(f"LoCoMo: {len(found[0])} conversations, sha256 {found[1]}, categories 1-4")
        embedders = () if sys.argv[1:] == ["speed"] else (("e5-small", e5), ("wordllama", static()))
        for vectors, embedder in embedders:
            if embedder is not None:
                quality(python, found[0], vectors, embedder, targets)
    speed(python, [_made_up()] if found is None else [with_fields(each) for each in found[0]], e5, targets)
    return int(bool(targets.missed))


if __name__ == "__main__":
    sys.exit(main())
