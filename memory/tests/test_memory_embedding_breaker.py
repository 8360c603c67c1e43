"""The breaker around an embedder: when queries reach the embedder, and when the breaker probes."""

import threading

import numpy as np
import pytest

from beaver_hostspecs.testing import FrozenClock
from beaver_memory.embedding.breaker import PROBE, Breaker
from beaver_memory.embedding.errors import EmbeddingError, failure
from beaver_memory.embedding.protocol import Identity
from beaver_memory.engine import MemoryEngine
from beaver_memory.filters import Filters
from beaver_memory.query import Query
from beaver_memory.records import NewMemory
from beaver_memory.views import View


class Moody:
    """An embedder with an error to raise, or something to wait for."""

    identity = Identity(provider="moody", model="m", dimensions=2)

    def __init__(self):
        self.error = None
        self.hold = threading.Event()
        self.hold.set()
        self.entered = threading.Semaphore(0)
        self.asked = []
        self.closed = False

    def embed_query(self, text):
        self.asked.append(text)
        self.entered.release()
        self.hold.wait(30)
        if self.error is not None:
            raise self.error
        return np.array([1.0, 0.0], "f4")

    def embed_passages(self, texts):
        return np.array([self.embed_query(text) for text in texts])

    def close(self):
        self.closed = True


class Place:
    """A breaker around an embedder that records the texts it is asked for."""

    def __init__(self, **options):
        self.clock, self.embedder = FrozenClock(), Moody()
        self.breaker = Breaker(self.embedder, self.clock, **options)

    def ask(self, text="tea"):
        """Return `answered`, or the category of the error."""
        return told(lambda: self.breaker.embed_query(text))

    def fail(self, category="timeout"):
        self.embedder.error = failure("moody", category, "It is down", "Mend it.")

    def mend(self):
        self.embedder.error = None


def told(work):
    try:
        work()
    except EmbeddingError as error:
        return error.category
    return "answered"


@pytest.fixture
def place():
    return Place()


def test_one_failure_opens_it(place):
    """After one failure the breaker repeats the error for a while without asking the embedder."""
    place.fail("timeout")

    assert ["timeout"] * 3 == [place.ask(text) for text in "abc"]
    assert ["a"] == place.embedder.asked


def test_what_is_refused_opens_nothing(place):
    """A refused text does not open the breaker for other texts."""
    place.fail("refused")
    refused = place.ask("much too long")
    place.mend()

    assert ("refused", "answered") == (refused, place.ask())


def test_whatever_is_raised_opens_it(place):
    """An exception that is no embedding error opens the breaker too."""
    place.embedder.error = RuntimeError("down")
    with pytest.raises(RuntimeError):
        place.ask()

    assert "unavailable" == place.ask()


def test_a_query_probes_after_the_pause(place):
    """The first query after the pause reaches the embedder, and an answer closes the breaker."""
    place.fail()
    place.ask("a")
    place.mend()
    place.clock.advance(3.9)
    early = place.ask("b")
    place.clock.advance(0.1)

    assert ["timeout", "answered", "answered"] == [early, place.ask("c"), place.ask("d")]
    assert ["a", "c", "d"] == place.embedder.asked


def test_the_pause_grows(place):
    """Each failed probe doubles the pause, up to a minute, and an answer resets it."""
    place.fail()
    pauses = []
    for _ in range(6):
        place.ask()
        pauses.append(place.breaker.probe_in() + 1)
        place.clock.advance(pauses[-1])
    place.mend()
    place.ask()
    place.fail()
    place.ask()

    assert [4.0, 8.0, 16.0, 32.0, 60.0, 60.0] == pauses
    assert 3.0 == place.breaker.probe_in()


def test_one_probe_at_a_time(place):
    """While one query probes, the breaker refuses other queries at once and starts no second probe."""
    place.fail()
    place.ask("a")
    place.mend()
    place.clock.advance(4.0)
    place.embedder.hold.clear()
    place.embedder.entered.acquire()
    answers = []
    thread = threading.Thread(target=lambda: answers.append(place.ask("b")))
    thread.start()
    place.embedder.entered.acquire()
    meanwhile = (place.ask("c"), place.breaker.probe(), place.breaker.probe_in())
    place.embedder.hold.set()
    thread.join()

    assert (("timeout", False, 4.0), ["answered"]) == (meanwhile, answers)
    assert ["a", "b"] == place.embedder.asked


def test_a_probe_beside_the_queries(place):
    """A probe runs a second before a query would, and returns whether the embedder answered."""
    place.fail()
    place.ask("a")
    place.clock.advance(2.9)
    early = place.breaker.probe()
    place.clock.advance(0.1)
    failed = (place.breaker.probe(), place.breaker.probe_in())
    place.mend()
    place.clock.advance(7.0)
    answered = (place.breaker.probe(), place.breaker.probe_in())

    assert (False, (False, 7.0), (True, None)) == (early, failed, answered)
    assert ["a", PROBE, PROBE] == place.embedder.asked
    assert False is place.breaker.probe()


def test_who_waits_in_vain_opens_it():
    """With all places taken by hanging calls a query waits briefly, and later ones are refused until a call returns."""
    place = Place(at_once=2, patience=0.01)
    place.embedder.hold.clear()
    threads = [threading.Thread(target=place.ask, args=(text,)) for text in "ab"]
    for thread in threads:
        thread.start()
        place.embedder.entered.acquire()
    meanwhile = [place.ask("c"), place.ask("d")]
    place.embedder.hold.set()
    for thread in threads:
        thread.join()

    assert (["timeout"] * 2, "answered") == (meanwhile, place.ask("e"))
    assert ["a", "b", "e"] == sorted(place.embedder.asked)


def test_passages_open_nothing(place):
    """A failed batch of passages does not open the breaker, and an answered one closes it."""
    place.fail("refused")
    batch = told(lambda: place.breaker.embed_passages(["a"]))
    place.mend()
    query = place.ask("b")
    place.fail()
    failed = place.ask("c")
    place.mend()
    answered = told(lambda: place.breaker.embed_passages(["d"]))

    assert ["refused", "answered", "timeout", "answered", "answered"] == [
        batch, query, failed, answered, place.ask("e"),
    ]  # fmt: skip


def test_it_stands_for_the_embedder(place):
    """The breaker has the identity of the embedder, and closes it."""
    place.breaker.close()

    assert (Moody.identity, True) == (place.breaker.identity, place.embedder.closed)


def test_an_engine_without_a_host(tmp_path):
    """An engine whose embedder fails answers by words at once, and by vectors after a successful probe."""
    clock, embedder = FrozenClock(), Moody()
    with MemoryEngine.open(tmp_path, embedder=embedder, clock=clock) as engine:
        engine.add(NewMemory(title="Ann likes tea."))
        engine.embed()
        seen = Filters(view=View(now=clock.now()))

        def search(text):
            answer = engine.search(Query(text=text, filters=seen))
            return [hit.memory.title for hit in answer.hits], answer.keyword_only

        embedder.error = failure("moody", "timeout", "It is down", "Mend it.")
        paused = [search("tea a"), search("tea b"), engine.probe_in(), engine.probe()]
        embedder.error = None
        clock.advance(3.0)
        after = [engine.probe(), search("tea c"), engine.probe_in()]

    words = (["Ann likes tea."], "timeout")
    assert [words, words, 3.0, False] == paused
    assert [True, (["Ann likes tea."], None), None] == after
    assert ["Ann likes tea.", "tea a", PROBE, "tea c"] == embedder.asked
