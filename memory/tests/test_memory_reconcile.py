"""Reconciliation: a memory that no longer holds ends when its successor is written, and nothing else does."""

import json
import re
from datetime import UTC, datetime, timedelta

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaver_memory.embedding.protocol import Identity
from beaver_memory.engine import MemoryEngine
from beaver_memory.filters import Filters
from beaver_memory.query import Query
from beaver_memory.reconcile.decision import Decision, Reconciled
from beaver_memory.reconcile.model_judge import LONGEST_ANSWER, LONGEST_TEXT, ModelJudge, decision_of, question
from beaver_memory.reconcile.reconciler import Reconciler
from beaver_memory.reconcile.vocabulary.reader import vocabulary
from beaver_memory.records import NewMemory, Owner, Store
from beaver_memory.store.in_memory import InMemoryStore
from beaver_memory.testing.store_cases.kit import looking
from beaver_memory.views import View

MONDAY = datetime(2026, 3, 2, 9, tzinfo=UTC)
DAY = timedelta(days=1)
ANN = Owner(user="ann")
ADDED = ("ADD", [])


class Calendar:
    """A clock that the test sets."""

    def __init__(self):
        self.time = MONDAY

    def now(self):
        return self.time

    def monotonic(self):
        return self.time.timestamp()


class Memories:
    """Writes memories on consecutive days, and reads them back."""

    def __init__(self, answer=None, embedder=None):
        self.clock, self.asked, self.events = Calendar(), [], []
        self.engine = MemoryEngine(InMemoryStore(), embedder=embedder, clock=self.clock)
        judge = None if answer is None else ModelJudge(self._ask(answer), trace=self._trace)
        self.reconciler = Reconciler(self.engine, judge=judge, clock=self.clock)

    def _ask(self, answer):
        def ask(text):
            self.asked.append(text)
            return answer() if callable(answer) else answer

        return ask

    def _trace(self, event, **facts):
        self.events.append((event, facts))

    def say(self, text, *, may_supersede=True, **fields):
        self.clock.time += DAY
        new = NewMemory(**{"title": text, "owner": ANN, "created_at": self.clock.time, **fields})
        return self.reconciler.remember(new, may_supersede=may_supersede)

    def recalled(self, text, **filters):
        seen = looking(**{"owners": (ANN,), "now": self.clock.time} | filters)
        return [hit.memory.title for hit in self.engine.search(Query(text=text, filters=seen)).hits]

    def successors(self):
        """Return the successor of each memory that has ended."""
        seen = Filters(view=View(owners=(ANN,), now=self.clock.time), lapsed=True)
        found = self.engine.store.recent(seen, limit=9)
        return {each.id: each.superseded_by for each in found if each.valid_until is not None}

    def history(self, id_):
        seen = Filters(view=View(owners=(ANN,), now=self.clock.time), lapsed=True)
        return [(each.event, sorted(each.new)) for each in self.engine.history(id_, seen)]


def answer(decision, index=None):
    """Return an answer within the contract."""
    return json.dumps({"decision": decision, "candidate_index": index})


# --- The cases of 002: all four decisions, the exact duplicate and the gate of trust ----------------------------------


@pytest.mark.shows("002-069")
def test_an_unrelated_memory_is_added():
    """A memory that conflicts with none is stored beside the others."""
    memories = Memories()
    memories.say("I live in Lisbon.")
    ended = memories.say("My favourite colour is green.")

    assert Reconciled(id=2, outcome="stored", reason="no_candidate") == ended
    assert ["I live in Lisbon."] == memories.recalled("Where do I live?")


class Topics:
    """An embedder: one dimension for vehicles, and one for all else."""

    identity = Identity(provider="test", model="topics", dimensions=2)

    def embed_query(self, text):
        return self.embed_passages([text])[0]

    def embed_passages(self, texts):
        return np.array([[1.0, 0.0] if re.search("automobile|vehicle", text) else [0.0, 1.0] for text in texts], "f4")

    def close(self):
        """Nothing is open."""


@pytest.mark.shows("002-068", "002-069")
def test_candidates_are_similar_by_words_or_by_vectors():
    """A memory that shares a vector and no word is a candidate; one that shares neither is none."""
    memories = Memories(answer("ADD"), Topics())
    memories.say("My automobile is blue.")
    memories.engine.embed()
    memories.say("The cellar smells of onions.")
    memories.engine.embed()
    memories.say("Our vehicle looks like heaven.")

    assert (True, False) == tuple(word in memories.asked[-1] for word in ("automobile", "cellar"))


@pytest.mark.shows("002-008", "002-074")
def test_a_memory_that_says_more_updates_the_one_that_says_less():
    """The text of the older memory is replaced by the longer one, and the old text is in its history."""
    memories = Memories()
    memories.say("The build needs Java.")
    memories.say("The parser reads tokens from the buffer.")
    ended = memories.say("The parser reads tokens from the ring buffer in blocks.")

    assert Reconciled(id=2, outcome="updated", mentions=2, reason="more_words") == ended
    assert ["The parser reads tokens from the ring buffer in blocks."] == memories.recalled("parser tokens buffer")
    assert [ADDED, ("UPDATE", ["mention_count", "title"])] == memories.history(2)


@pytest.mark.shows("002-008", "002-075")
def test_a_memory_that_changed_supersedes_the_older_one():
    """Recall gives the newer memory alone, and a question as of yesterday gives the older one."""
    memories = Memories()
    memories.say("I live in Lisbon.")
    ended = memories.say("I moved to Porto.")

    assert Reconciled(id=2, outcome="superseded", superseded=(1,), reason="single_value") == ended
    assert ["I moved to Porto."] == memories.recalled("live moved Lisbon Porto")
    yesterday = memories.clock.time - DAY
    assert ["I live in Lisbon."] == memories.recalled("live moved Lisbon Porto", as_of=yesterday)
    assert ["I moved to Porto."] == memories.recalled("live moved Lisbon Porto", as_of=memories.clock.time)
    assert [ADDED, ("DELETE", ["superseded_by", "valid_until"])] == memories.history(1)


@pytest.mark.shows("002-076", "003-072")
def test_a_memory_that_says_the_same_is_a_mention():
    """A memory in other words for nothing new is counted, and not stored."""
    memories = Memories(answer("NONE", 0))
    memories.say("I live in Lisbon.")
    ended = memories.say("My home is in Lisbon.")

    assert Reconciled(id=1, outcome="duplicate", mentions=2, reason="model") == ended
    assert ["I live in Lisbon."] == memories.recalled("Lisbon")


@pytest.mark.shows("002-067")
def test_the_same_words_are_a_mention_without_a_question_to_the_judge():
    """The same title and facts in one store are counted, and no model is asked."""
    memories = Memories(answer("DELETE", 0))
    memories.say("I live in Lisbon.", facts=("since 2020",))
    ended = memories.say("I live in Lisbon.", facts=("since 2020",))

    assert Reconciled(id=1, outcome="duplicate", mentions=2, reason="exact") == ended
    assert [] == memories.asked


@pytest.mark.shows("002-068")
@pytest.mark.parametrize(
    "place",
    [
        {"owner": Owner(user="eve")},
        {"store": Store.SOCIAL},
        {"scope": "project", "project": "p"},
        {"scope": "session", "session": "s"},
        {"agent": "other"},
    ],
)
def test_a_memory_of_another_place_is_neither_shown_to_the_judge_nor_changed(place):
    """A memory ends none of another owner, store, scope or agent, whatever a model answers."""
    memories = Memories(answer("DELETE", 0))
    memories.say("I live in Lisbon.")
    ended = memories.say("I live in Porto.", **place)

    assert Reconciled(id=2, outcome="stored", reason="no_candidate") == ended
    assert ([], [ADDED]) == (memories.asked, memories.history(1))


def test_a_text_that_may_not_supersede_is_stored_beside_the_others():
    """A text of external origin ends nothing, but may count as a mention."""
    memories = Memories()
    memories.say("I live in Lisbon.")
    beside = memories.say("I live in Porto.", may_supersede=False)

    assert Reconciled(id=2, outcome="stored", reason="may_not_supersede") == beside
    assert {"I live in Lisbon.", "I live in Porto."} == set(memories.recalled("live in"))


# --- Time -------------------------------------------------------------------------------------------------------------


def test_a_memory_that_was_said_before_its_successor_ends_there():
    """An older statement that is imported later was true until the newer one, which stays as it is."""
    memories = Memories()
    memories.say("I live in Porto.")
    said = memories.clock.time
    ended = memories.say("I live in Lisbon.", created_at=said - 9 * DAY)

    assert Reconciled(id=2, outcome="stored", reason="said_before") == ended
    assert ["I live in Porto."] == memories.recalled("live Lisbon Porto")
    assert ["I live in Lisbon."] == memories.recalled("live Lisbon Porto", as_of=said - DAY)
    assert {2: 1} == memories.successors()


def test_a_statement_between_two_others_ends_the_first_and_ends_at_the_last():
    """Three homes that become known out of order hold one after the other."""
    memories = Memories(answer("ADD"))
    memories.say("I live in Lisbon.")
    first = memories.clock.time
    memories.say("I live in Faro.", created_at=first + 20 * DAY)
    rules = Reconciler(memories.engine, clock=memories.clock)
    memories.clock.time = first + 30 * DAY
    rules.remember(NewMemory(title="I live in Porto.", owner=ANN, created_at=first + 10 * DAY))

    found = [memories.recalled("live", as_of=first + days * DAY) for days in (5, 15, 25)]
    assert [["I live in Lisbon."], ["I live in Porto."], ["I live in Faro."]] == found
    assert {1: 3, 3: 2} == memories.successors()


def test_a_value_that_returns_is_true_again():
    """The same words after a change are a new memory, which supersedes the change."""
    memories = Memories()
    for text in ("I live in Lisbon.", "I live in Porto.", "I live in Lisbon."):
        ended = memories.say(text)

    assert Reconciled(id=3, outcome="superseded", superseded=(2,), reason="single_value") == ended
    assert ["I live in Lisbon."] == memories.recalled("live")


def test_a_correction_ends_the_memories_that_it_names():
    """A correction supersedes a memory whatever both say, unless that lies elsewhere."""
    memories = Memories()
    memories.say("The launch is planned.")
    memories.say("A memory of Eve.", owner=Owner(user="eve"))
    memories.clock.time += DAY
    corrected = memories.reconciler.supersede(NewMemory(title="It shipped.", owner=ANN), [1, 2])

    assert Reconciled(id=3, outcome="superseded", superseded=(1,), reason="corrected") == corrected
    assert ["It shipped."] == memories.recalled("launch planned shipped memory")


@pytest.mark.parametrize("language", ["en", "de", "zh"])
def test_each_pattern_is_searched_from_few_places(language):
    """A pattern that begins with any text is searched from the beginning of a statement only."""
    texts = [pattern.pattern for family in vocabulary(language).families for pattern in family.patterns]

    assert [] == [text for text in texts if re.match(r"\(\?P<\w>\.[+*]|\.[+*]", text)]


# --- The contract with a model ----------------------------------------------------------------------------------------


@pytest.mark.shows("002-070")
def test_a_model_sees_numbers_and_clipped_texts_only():
    """The question to a model numbers the candidates, and holds no id, owner or store, and at most so much of each text."""
    memories = Memories(answer("ADD"))
    for text in ("cat " * 1_000, "cat and dog", "cat and bird"):
        memories.say(text)
    first, second = (json.loads(each.split("\n\n", 1)[1]) for each in memories.asked)

    text = first["candidates"][0].pop("text")
    assert {"new": "cat and dog", "candidates": [{"index": 0}]} == first
    assert (LONGEST_TEXT, True) == (len(text), text.endswith("…"))
    assert [0, 1] == [each["index"] for each in second["candidates"]]


@pytest.mark.shows("002-071")
@pytest.mark.parametrize(
    ("given_answer", "reason"),
    [
        (answer("ADD"), "model"),
        (answer("DELETE", 1), "answer_wrong_index"),
        (answer("DELETE", -1), "answer_wrong_index"),
        (answer("DELETE", True), "answer_wrong_index"),
        (answer("DELETE", 0.0), "answer_wrong_index"),
        (answer("DELETE"), "answer_wrong_index"),
        (answer("ADD", 0), "answer_wrong_index"),
        (answer("delete", 0), "answer_unknown_decision"),
        (answer(["DELETE"], 0), "answer_unknown_decision"),
        ('{"decision": "DELETE"}', "answer_wrong_keys"),
        ('{"decision": "DELETE", "candidate_index": 0, "store": "social"}', "answer_wrong_keys"),
        ('{"decision": "UPDATE", "candidate_index": 0, "merged": {"title": "x"}}', "answer_wrong_keys"),
        ('{"decision": "ADD", "decision": "DELETE", "candidate_index": 0}', "answer_not_json"),
        ('```json\n{"decision": "DELETE", "candidate_index": 0}\n```', "answer_not_json"),
        ("[" * 100, "answer_not_json"),
        ("x" * (LONGEST_ANSWER + 1), "answer_too_long"),
        ("", "answer_not_json"),
        (None, "answer_not_text"),
        (b"{}", "answer_not_text"),
    ],
)
def test_an_answer_outside_the_contract_adds_the_memory(given_answer, reason):
    """A wrong answer leaves every memory as it is, and the reason is recorded."""
    memories = Memories(lambda: given_answer)
    memories.say("I live in Lisbon.")
    ended = memories.say("I live in Porto.")

    assert Reconciled(id=2, outcome="stored", reason=reason) == ended
    assert [ADDED] == memories.history(1)
    assert ([] if reason == "model" else [("reconcile_answer_refused", {"reason": reason})]) == memories.events


@pytest.mark.shows("002-077")
def test_a_model_that_fails_adds_the_memory():
    """A model that raises costs nothing but its decision, and the failure is traced by its class."""

    def fail():
        raise TimeoutError("secret text")

    memories = Memories(fail)
    memories.say("I live in Lisbon.")
    ended = memories.say("I live in Porto.")

    assert Reconciled(id=2, outcome="stored", reason="model_failed") == ended
    assert [("reconcile_model_failed", {"error": "TimeoutError"})] == memories.events


def test_a_model_can_end_the_memory_that_it_chooses():
    """A model's decision within the contract is carried out."""
    memories = Memories(answer("DELETE", 0))
    memories.say("The cat sleeps in the barn.")
    ended = memories.say("The cat sleeps in the attic.")

    assert Reconciled(id=2, outcome="superseded", superseded=(1,), reason="model") == ended


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(["ADD", "DELETE", "UPDATE"]),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.sampled_from(["decision", "candidate_index"]) | st.text(), inner)
    ),
    max_leaves=8,
)


@given(given_answer=st.text() | JSON.map(json.dumps) | JSON, count=st.integers(0, 3))
def test_an_answer_of_any_shape_chooses_a_candidate_or_adds(given_answer, count):
    """Whatever an answer is, the decision is `ADD`, or it names one candidate that the model was shown."""
    found = decision_of(given_answer, count)

    if found.event == "ADD":
        assert Decision(reason=found.reason) == found
    else:
        (place,) = found.places
        assert 0 <= place < count
        assert {"decision": found.event, "candidate_index": place} == json.loads(given_answer)


@given(text=st.text(min_size=1, max_size=900).filter(lambda text: text.replace("\0", "").strip("\ufffd \n\t")))
def test_a_text_of_a_memory_stays_data_in_the_question(text):
    """Any text of a memory comes back from the question as it is, clipped."""
    try:
        new = NewMemory(title=text)
    except ValueError:
        return
    shown = json.loads(question(new, []).split("\n\n", 1)[1])

    assert {"new": shown["new"], "candidates": []} == shown
    assert shown["new"].removesuffix("…") == text[: len(shown["new"].removesuffix("…"))]


def test_a_memory_that_is_forgotten_meanwhile_is_not_updated():
    """If a candidate disappears before the decision is carried out, the new memory is stored."""
    memories = Memories(
        lambda: (memories.engine.forget([1], Filters(view=View(owners=(ANN,), now=MONDAY))), answer("NONE", 0))[1]
    )
    memories.say("I live in Lisbon.")
    ended = memories.say("I live in Porto.")

    assert attrs.evolve(ended, reason="candidate_gone") == ended
    assert ["I live in Porto."] == memories.recalled("live")


def test_a_memory_that_its_author_writes_ends_what_it_contradicts():
    """An explicit write ends what it contradicts, changes no other text, and counts the same one as mentioned."""
    memories = Memories()
    for text in ("I live in Lisbon.", "I have a cat.", "Ticket 12."):
        memories.say(text)
    said = "I live in Porto.", "I have a cat named Tom.", "Ticket 13.", "Ticket 13."
    memories.clock.time += DAY
    kept = [memories.reconciler.add(NewMemory(title=each, owner=ANN)) for each in said]
    assert [(each.outcome, each.mentions, each.superseded) for each in kept] == [
        ("stored", 1, (1,)), ("stored", 1, ()), ("stored", 1, ()), ("duplicate", 2, ()),
    ]  # fmt: skip
    assert {1: kept[0].id} == memories.successors()
