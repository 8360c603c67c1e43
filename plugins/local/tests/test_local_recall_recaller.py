"""Recall over a real engine: gate, search, references and index, and the events that they report."""

import math
from datetime import timedelta
from functools import partial
from pathlib import Path

import attrs
import numpy as np
import pytest

from beaver_hooks_local.recall.recaller import Recaller
from beaver_hooks_local.settings import LocalSettings, PromptIndexSettings, RecallSettings
from beaver_hooks_local.visibility import Visibility
from beaver_hostspecs import Actors, Message, Scope
from beaver_hostspecs.testing import RecordingReport, make_turn
from beaver_memory.embedding.protocol import Identity, TokenEmbedding
from beaver_memory.errors import StoreError
from beaver_memory.layers import Layer
from beaver_memory.records import NewMemory, Owner, SessionSummary
from beaver_memory.views import Reach

STABLE = "The billing service is deployed from the branch stable."
QUESTION = "From which branch is the billing service deployed?"
ANN = Owner(user="ann")


class Place:
    """An engine, a recaller, and the events that they report."""

    def __init__(self, make_operations, embedder=None, **settings):
        self.traced = []
        settings = LocalSettings(**{"enabled": True, **settings})
        self.operations = make_operations(
            formula=settings.ranking.formula,
            **({} if embedder is None else {"embedder": embedder, "reranker": "tokens"}),
            trace=lambda event, **facts: self.traced.append((event, facts)),
        )
        self.engine, self.clock = self.operations.engine, self.operations.clock
        self.recaller = Recaller(self.operations, settings)

    def add(self, title, **fields):
        fields = {"owner": ANN, "created_at": self.clock.now() - timedelta(days=30), **fields}
        return self.engine.add(NewMemory(title=title, **fields))[0]

    def ask(self, prompt=QUESTION, report=None, **fields):
        turn = make_turn(**{"prompt": prompt, "user": "ann", "trust": "full", **fields})
        return self.recaller.recall(turn, report or RecordingReport())

    def reasons(self, *prompts, **fields):
        return [
            f"{each.verdict}: {each.reason}" for each in (self.ask(prompt, **fields).decision for prompt in prompts)
        ]


@pytest.fixture
def make_place(make_operations):
    return partial(Place, make_operations)


@pytest.fixture
def place(make_place):
    return make_place()


def kinds(recall):
    return [reference.kind for reference in recall.references]


@pytest.mark.shows("003-005", "003-043", "003-047")
def test_recalled(place):
    """A recall returns a memory as a scored reference, and reports its decision, candidates and events."""
    report = RecordingReport()
    id_ = place.add(STABLE, type="decision")
    recall = place.ask(report=report)

    assert ([STABLE], (id_,)) == ([each.text for each in recall.references], recall.given)
    assert [("recall", "recall", "session_start")] == report.decisions
    assert [((str(id_), recall.references[0].score),)] == report.candidate_lists
    assert [("memory_prompt_index_skipped", {"reason": "empty"})] == [
        (name, dict(facts)) for name, facts in report.events
    ]


@pytest.mark.shows("003-005", "003-043", "003-053", "003-059", "003-060", "003-061", "003-064", "003-066", "003-100")
def test_a_session(place):
    """A session recalls at its start, reuses, skips an acknowledgement, and recalls at another topic."""
    place.add(STABLE)

    assert [
        "recall: session_start",
        "reuse: same_topic",
        "reuse: same_query",
        "skip: acknowledgement",
        "recall: topic_change",
    ] == place.reasons(QUESTION, "And why is it so?", QUESTION, "ok", "Who waters the plants in the office?")


@pytest.mark.shows("003-059", "003-066")
def test_what_is_used_again_is_given_again(place):
    """A reused recall gives the same references again without another search."""
    place.add(STABLE)
    first, again = place.ask(), place.ask("And why is it so?")

    assert first.references == again.references
    assert ["recall_gate", "recall_searched"] == [event for event, _ in place.traced][:2]
    assert 1 == sum(event == "recall_searched" for event, _ in place.traced)


@pytest.mark.shows("003-061")
def test_another_question_gets_its_own_answer(place):
    """A prompt with one different word is searched anew and given its own answer."""
    for week, what in enumerate(("monday", "spring", "audit", "review", "legal", "launch", "freeze"), 3):
        place.add(f"The {what} deadline of the Atlas billing project moved to week {week}.")
    budget = place.add("The Atlas billing budget is 40,000 euros.")
    first, other = (place.ask(f"What is the {what} of the Atlas billing project?") for what in ("deadline", "budget"))

    assert ("topic_change", False, True) == (other.decision.reason, budget in first.given, budget in other.given)


def test_writes_are_seen_at_once(place):
    """A write of the owner ends the reuse of a recall, and a forgotten memory is not shown again."""
    id_ = place.add(STABLE)
    place.ask()
    other = place.add("The branch stable of the billing service is protected.")
    after = place.ask("And why is it so?")
    place.engine.forget(
        [id_, other], Visibility.of_turn(make_turn(user="ann", trust="full"), Reach()).own(place.clock.now())
    )

    assert "memory_changed" == after.decision.reason
    assert () == place.ask("And why is it so?").references


@pytest.mark.shows("003-063", "003-100")
def test_stale(place):
    """A recall is not reused after its lifetime."""
    place.add(STABLE)
    place.ask()
    place.clock.advance(180.0)

    assert ["recall: stale"] == place.reasons("And why is it so?")


@pytest.mark.shows("003-090")
def test_what_expires_is_not_used_again(place):
    """A recall is not reused after the first of its memories expires."""
    place.add(STABLE, expires_at=place.clock.now() + timedelta(seconds=10))
    place.ask()
    place.clock.advance(11.0)
    recall = place.ask("And why is it so?")

    assert ("stale", ()) == (recall.decision.reason, recall.references)


@pytest.mark.shows("003-063")
def test_what_found_nothing_looks_again(place):
    """A recall that found nothing is repeated in the next turn."""
    assert ["recall: session_start", "recall: low_confidence"] == place.reasons(QUESTION, "And why is it so?")


@pytest.mark.shows("003-065")
@pytest.mark.parametrize("actors", [Actors(speaker_kind="tool"), Actors(trigger="tool_result")])
def test_turns_of_tools(place, actors):
    """A turn that a tool caused recalls nothing."""
    place.add(STABLE)

    assert ["skip: tool_turn"] == place.reasons(QUESTION, actors=actors)


def test_sessions_have_windows_of_their_own(place):
    """Another session, or another trust in the same session, starts with a new recall."""
    place.add(STABLE)
    place.ask()

    assert ["recall: session_start"] == place.reasons(QUESTION, session="other")
    assert ["recall: session_start"] == place.reasons(QUESTION, trust="inner")


@pytest.mark.shows("002-031", "002-032", "002-033", "002-034")
@pytest.mark.parametrize(
    ("trust", "expected"),
    [
        ("full", ["private", "shared", "social"]),
        ("inner", ["shared", "social"]),
        ("familiar", ["social"]),
        ("public", []),
    ],
)
def test_trust(place, trust, expected):
    """References and index show the stores of the trust, and the `trust` decision names the stores left out."""
    for store in ("private", "shared", "social"):
        place.add(f"The billing service is {store}.", store=store)
        place.add(f"A new thing that is {store}.", store=store, created_at=place.clock.now())
    report = RecordingReport()
    shown = " ".join(reference.text for reference in place.ask(report=report, trust=trust).references)

    assert expected == [store for store in ("private", "shared", "social") if store in shown]
    left_out = [store for store in ("private", "shared", "social") if store not in expected]
    told = [(verdict, reason) for gate, verdict, reason in report.decisions if gate == "trust"]
    assert [("left_out", store) for store in left_out] == told


@pytest.mark.shows("002-034", "002-043", "002-123")
def test_public_is_told(place):
    """A public turn searches nothing, and the decisions of trust and gate say so."""
    report = RecordingReport()
    place.ask(report=report, trust="public")

    left_out = [("trust", "left_out", store) for store in ("private", "shared", "social")]
    assert [*left_out, ("recall", "skip", "trust")] == report.decisions
    assert [("memory_prompt_index_skipped", {"reason": "trust"})] == [
        (name, dict(facts)) for name, facts in report.events
    ]


@pytest.mark.shows("003-074", "003-077", "003-109")
def test_owners(place):
    """A user sees their own memories and the tenant's memories without a user, and none of another tenant."""
    place.add("The billing service of Ann.")
    place.add("The billing service of Bob.", owner=Owner(user="bob"))
    place.add("The billing service of everybody.", owner=Owner())
    place.add("The billing service of another tenant.", owner=Owner(tenant="t2", user="ann"))

    def shown(**fields):
        texts = " ".join(each.text for each in place.ask(**fields).references)
        return {name for name in ("Ann", "Bob", "everybody", "another") if f"of {name}" in texts}

    assert [{"Ann", "everybody"}, {"Bob", "everybody"}, {"everybody"}, {"another"}] == [
        shown(),
        shown(user="bob"),
        shown(user=None),
        shown(scope=Scope(tenant="t2")),
    ]


@pytest.mark.shows("003-075", "003-078")
def test_projects_agents_and_sessions(place):
    """Memories of another project, agent or session are left out where they do not hold everywhere."""
    place.add("The billing service in project one.", scope="project", project="one")
    place.add("The billing service in project two.", scope="project", project="two")
    place.add("The billing service for agent two.", agent="two")
    place.add("The billing service in session two.", scope="session", session="two")
    place.add("The billing service everywhere.")
    place.add("The billing service everywhere, said in project two.", project="two")
    texts = [each.text for each in place.ask(scope=Scope(project="one", agent="one")).references]

    everywhere = {"The billing service everywhere.", "The billing service everywhere, said in project two."}
    assert {"The billing service in project one.", *everywhere} == set(texts)


def test_outside_of_any_project(place):
    """A turn outside of any project sees what holds everywhere, of every agent, and nothing of a project."""
    place.add("The billing service of everybody.", scope="global", project="one", agent="a")
    place.add("The billing service in project one.", scope="project", project="one", agent="a")
    place.add("The billing service in project two.", scope="project", project="two", agent="b")
    texts = [each.text for each in place.ask().references]

    assert ["The billing service of everybody."] == texts


def test_said_already(place):
    """A memory that the history holds word for word is not given, also in a turn that reuses a recall."""
    place.add(STABLE)
    history = [Message(role="assistant", text=f"As I said: {STABLE}")]

    assert ((), 1) == (place.ask(history=history).references, len(place.ask(history=history).hits))


@pytest.mark.shows("002-036", "003-054", "003-097")
def test_top_k(make_place):
    """A recall gives at most `topK` memories, the best ones, and the index lists the other relevant ones."""
    place = make_place(recall=RecallSettings(top_k=3))
    for number in range(8):
        place.add(f"Billing service fact {number}: {'abcdefgh'[number] * 9} {number * 7919}")
    recall = place.ask("billing service")

    assert ["discovery"] * 3 + ["index"] == kinds(recall)
    assert [hit.memory.id for hit in recall.hits[:3]] == [*recall.given]
    assert 5 == recall.references[-1].text.count("Billing service fact")


@pytest.mark.shows("003-099")
@pytest.mark.parametrize(("minimum", "given"), [(0.0, [STABLE]), (None, []), (0.9, [])])
def test_minimum_score(make_place, minimum, given):
    """A memory below the minimum score is not given; the settings set another minimum than that of the search."""
    place = make_place(recall=RecallSettings(minimum_score=minimum))
    place.add(STABLE)
    place.add("The canteen closes at six.")
    recall = place.ask("Which library serves the billing department of Lisbon?")

    assert given == [each.text for each in recall.references if each.kind != "index"]


def test_what_has_ended(place):
    """What a newer memory outdates, or what has ended, is given or listed only if the question asks for the past."""
    year = timedelta(days=365)
    ids = [place.add("I live in Lisbon.", created_at=place.clock.now() - year), place.add("I live in Porto.")]
    ids.append(place.add("I lived in Bonn.", valid_until=place.clock.now() - year))
    now, earlier = place.ask("Where do I live?"), place.ask("Where did I use to live?")

    assert ((ids[1],), {ids[0]: "outdated", ids[1]: "given"}) == (now.given, now.reasons)
    assert {*ids} == {*earlier.given}
    assert 1 == sum(each.text.startswith("(true until 20") for each in earlier.references)
    assert not any("Lisbon" in each.text for each in now.references)


def test_a_prompt_about_something_else(place):
    """A prompt about something else is given nothing, and the receipt says so; the index lists no relevant memory."""
    place.add(STABLE)
    report = RecordingReport()
    recall = place.ask("Which branch of the library in Turin opens on Sundays, and who runs the lending desk?", report)

    assert ((), {"unrelated"}) == (recall.references, {*recall.reasons.values()})
    assert ("relevance", "none_given", "unrelated") in report.decisions


def test_another_kind_of_question_searches_again(place):
    """A question for the past with the same words does not reuse a recall of the present."""
    place.add(STABLE)
    prompts = (
        "Is the billing service stable?",
        "Was the billing service stable before?",
        "Is the billing service stable?",
    )

    assert ["session_start", "topic_change", "topic_change"] == [
        place.ask(each).decision.reason for each in prompts[:2]
    ] + [place.ask("Billing service stable?").decision.reason]


@pytest.mark.shows("003-098")
@pytest.mark.parametrize(("configured", "budget"), [(1200, 10), (10, None)])
def test_budget_of_the_turn(make_place, configured, budget):
    """A recall stays within the tokens of the turn and of the settings, and reports the memories that did not fit."""
    place, report = make_place(recall=RecallSettings(max_tokens=configured)), RecordingReport()
    place.add(STABLE)
    recall = place.ask(report=report, budget=budget)

    assert [] == [kind for kind in kinds(recall) if kind != "index"]
    assert ("memories", 0, 1) in report.clippings


@pytest.mark.shows("002-013", "002-026", "002-029", "002-035", "002-040", "002-042", "002-044", "002-123")
def test_index(place):
    """The index lists the memories of three days for any prompt, and sessions at full trust; its events are reported."""
    report = RecordingReport()
    place.add(STABLE)
    for days, title in enumerate(("Ann likes tea.", "Bob rows on Fridays.", "Eve keeps bees.", "Dan paints."), 1):
        place.add(title, created_at=place.clock.now() - timedelta(days=days))
    place.engine.store.summarise(
        ANN, SessionSummary(session="s0", outcome="Chose stable.", created_at=place.clock.now())
    )
    *_, index = place.ask(report=report).references

    assert ("index", True, True) == (index.kind, "Ann likes tea." in index.text, "s0: Chose stable." in index.text)
    assert STABLE not in index.text
    assert [True, True, False] == [name in index.text for name in ("Bob rows", "Eve keeps", "Dan paints")]
    assert ["memory_prompt_index_injected"] == [name for name, _ in report.events]
    assert {"memory_prompt_index_built", "memory_prompt_index_injected"} <= {event for event, _ in place.traced}
    assert "Chose" not in " ".join(each.text for each in place.ask(trust="inner").references)


@pytest.mark.shows("002-030")
def test_the_list_is_made_once(place, monkeypatch):
    """The recent memories of the index are read once for all prompts and sessions, until the next write."""
    looked, recent = [], place.engine.store.recent
    monkeypatch.setattr(place.engine.store, "recent", lambda *args, **more: looked.append(1) or recent(*args, **more))
    place.add(STABLE)
    place.add("Ann likes tea.", created_at=place.clock.now())
    first = place.ask()
    once = len(looked)
    asked = (("s", "Is the branch stable protected?"), ("t", QUESTION), ("s", QUESTION))
    shown = [first, *(place.ask(prompt, session=session) for session, prompt in asked)]
    again = len(looked)
    place.add("Ann likes coffee.", created_at=place.clock.now())

    assert ([True] * 4, once) == (["Ann likes tea." in each.references[-1].text for each in shown], again)
    assert "Ann likes coffee." in place.ask().references[-1].text


@pytest.mark.shows("002-037")
def test_the_list_follows_the_topic(place):
    """The index lists memories relevant to the prompt, or to the earlier prompt whose recall is reused."""
    for number, letter in enumerate("abcdefghij"):
        place.add(f"The Atlas billing rollout step {letter * 7} is owned by team {number * 37}.")
        place.add(f"The sailing boat item {letter * 7} needs repair number {number * 53}.")
    prompts = ("Who owns the Atlas billing rollout?", "Which sailing boat item needs repair?", "And why is it so?")
    texts = [place.ask(prompt).references[-1].text for prompt in prompts]

    assert [(2, 0), (0, 2), (0, 2)] == [(text.count("Atlas"), text.count("sailing")) for text in texts]


def test_what_was_made_for_a_look_is_kept_with_it(place):
    """A reused recall returns the same objects, unless the conversation now holds other parts of them."""
    place.add(STABLE)
    place.add("The branch stable of the billing service is protected.")
    place.add("Ann likes tea.", created_at=place.clock.now())
    first, again = place.ask(), place.ask("And why is it so?")
    other = place.ask("And why is it so?", history=[Message(role="user", text=f"{STABLE} Ann likes tea.")])

    assert [True] * 3 == [one is two for one, two in zip(first.references, again.references, strict=True)]
    assert ["The branch stable of the billing service is protected."] == [each.text for each in other.references]


def test_what_holds_in_one_session_is_listed_there_only(place):
    """A memory of one session is listed in that session only, and every list has the newest summaries."""
    now = place.clock.now()
    place.add(STABLE)
    place.add("Ann likes tea.", created_at=now)
    first = place.ask(session="other").references[-1].text
    place.add("The tea is green today.", created_at=now, session="here", scope="session")
    place.engine.store.summarise(ANN, SessionSummary(session="s0", outcome="Chose tea.", created_at=now))
    texts = [place.ask(session=session).references[-1].text for session in ("here", "there", "here")]

    assert "Chose tea." not in first
    assert [True] * 3 == ["Chose tea." in text and "Ann likes tea." in text for text in texts]
    assert [True, False, True] == ["green today" in text for text in texts]


def test_what_a_turn_is_given_is_not_listed_beside_it(place):
    """A memory given as a reference is not in the list of the same turn, and is in the list of another turn."""
    place.add(STABLE, created_at=place.clock.now())
    place.add("Ann likes tea.", created_at=place.clock.now())
    texts = [place.ask(prompt).references[-1].text for prompt in (QUESTION, "Does Ann like tea?")]

    assert [(False, True), (True, False)] == [(STABLE in text, "Ann likes tea." in text) for text in texts]


def test_a_full_list_of_recent_memories(make_place):
    """A recent memory that was found and not given has its score in the list, and only there, although the list is full."""
    place = make_place(prompt_index=PromptIndexSettings(limit=2))
    hour = place.clock.now() - timedelta(hours=1)
    for title in (STABLE, STABLE.replace("The", "Now the")):
        place.add(title, created_at=hour)
    found = place.ask()
    other = place.ask("What does Ann drink, and where?", session="other")

    assert {"given", "repeated"} == set(found.reasons.values())
    assert [1, 0] == [each.references[-1].text.rpartition("(")[-1].count(",") for each in (found, other)]


@pytest.mark.shows("002-038")
def test_the_tokens_of_the_index(make_place):
    """The index lists as many recent memories as the configured tokens hold, the newest first, and reports the cut."""
    place, report = make_place(prompt_index=PromptIndexSettings(max_tokens=100)), RecordingReport()
    for hours in range(9):
        place.add(f"Hive {hours} is full of honey.", created_at=place.clock.now() - timedelta(hours=hours))
    (index,) = place.ask(report=report).references
    listed = [f"Hive {hours} " in index.text for hours in range(9)]

    assert (True, False) == (listed[0], listed[-1])
    assert sorted(listed, reverse=True) == listed
    assert ("index", sum(listed), 9) in report.clippings


@pytest.mark.shows("002-027")
@pytest.mark.parametrize(("limit", "listed"), [(7, (3, 1)), (2, (2, 0))])
def test_the_limit_of_the_index(make_place, limit, listed):
    """The index has room for `limit` memories: recent ones, then relevant ones, of which three are given beside it."""
    place = make_place(prompt_index=PromptIndexSettings(limit=limit), recall=RecallSettings(top_k=3))
    for hours in range(3):
        place.add(f"Hive {hours} is full of honey.", created_at=place.clock.now() - timedelta(hours=hours))
    for number in range(8):
        place.add(f"Billing service fact {number}: {'abcdefgh'[number] * 9} {number * 7919}")
    index = place.ask("billing service").references[-1].text

    assert listed == (index.count("Hive"), index.count("Billing service fact"))


@pytest.mark.shows("002-030", "002-043", "002-123")
def test_index_off(make_place):
    """The index can be turned off."""
    place = make_place(prompt_index=PromptIndexSettings(enabled=False))
    for title in ("Ann likes tea.", "Bob rows on Fridays."):
        place.add(title, created_at=place.clock.now())

    assert ["discovery"] == kinds(place.ask("tea?"))
    assert ("memory_prompt_index_skipped", {"reason": "off"}) in place.traced


def test_recall_off(make_place):
    """Recall can be turned off, and says so."""
    place = make_place(recall=RecallSettings(enabled=False))
    place.add(STABLE)

    assert ["skip: off"] == place.reasons(QUESTION)


@pytest.mark.shows("002-109")
def test_the_trace_holds_no_content(place):
    """Neither traces nor reports contain text of prompts or memories."""
    report = RecordingReport()
    place.add(STABLE)
    place.ask(report=report)
    told = repr((place.traced, report.events, report.decisions, report.candidate_lists))

    assert [] == [word for word in ("billing", "branch", "stable", "ann") if word in told]


def test_last(place):
    """The last recall of a session is kept with the shares of each hit, and with the later decision to skip."""
    place.add(STABLE)
    recall = place.ask()
    skipped = place.ask("ok").decision

    assert attrs.evolve(recall, skipped=skipped) == place.recaller.last(
        Visibility.of_turn(make_turn(user="ann", trust="full"), Reach())
    )
    assert abs(sum(recall.hits[0].shares.values()) - recall.hits[0].score) < 1e-4
    assert None is place.recaller.last(Visibility.of_turn(make_turn(user="bob", trust="full"), Reach()))


@pytest.mark.shows("002-041", "003-110")
@pytest.mark.parametrize("what", ["summaries", "recent"])
def test_an_index_that_fails(place, monkeypatch, what):
    """A failing index costs only the list: the memories are given, and an event names the error."""
    report = RecordingReport()
    place.add(STABLE)

    def broken(*_, **__):
        raise StoreError(Path("memory.db"), "locked")

    monkeypatch.setattr(place.engine.store, what, broken)
    recall = place.ask(report=report)

    assert [STABLE] == [each.text for each in recall.references]
    assert ("memory_prompt_index_failed", {"error": "StoreError"}) == (report.events[0][0], dict(report.events[0][1]))


def test_a_prompt_has_no_operators(make_place):
    """Quotes and stars in a prompt are plain signs: it recalls what its words recall."""
    prompts = ("which billing service branch", '"which billing" ser* "service branch" bran*')
    places = [make_place() for _ in prompts]
    given = []
    for place, prompt in zip(places, prompts, strict=True):
        place.add(STABLE)
        place.add("The branch that serves billing is a service.")
        given.append(place.ask(prompt).given)

    assert given[0] == given[1] != ()


def test_no_index(place, monkeypatch):
    """Where no index can be built the database's words answer, and an event and the health say so meanwhile."""
    id_ = place.add(STABLE)
    with monkeypatch.context() as patched:
        patched.setattr(Layer, "sources", lambda *_, **__: (_ for _ in ()).throw(MemoryError))
        before, after = RecordingReport(), RecordingReport()
        found = place.ask(report=before)
    place.ask("And from which branch is the website deployed?", report=after)

    assert ((id_,), ("memory_recall_without_index", {"category": "out_of_memory"})) == (found.given, before.events[0])
    assert (["index_out_of_memory"], 1) == (before.degradations, after.recoveries)


class Tokens:
    """An embedder for which every text has the same two tokens."""

    has_tokens, identity = True, Identity(provider="test", model="tokens", dimensions=2)

    def embed_query_tokens(self, _):
        return TokenEmbedding(vector=np.ones(2, "f4"), tokens=np.ones((2, 2), "f4"))

    def embed_passage_tokens(self, texts):
        return [self.embed_query_tokens(text) for text in texts]

    def close(self):
        """Keep nothing."""


@pytest.mark.parametrize(("remaining", "told"), [(math.inf, []), (5.0, []), (0.0, [{"category": "deadline"}])])
def test_a_hook_whose_time_is_over(make_place, remaining, told):
    """Near its deadline a recall is not ranked again by tokens, and an event says so; the memory is given anyway."""
    place, report = make_place(embedder=Tokens()), RecordingReport(remaining=remaining)
    id_ = place.add(STABLE)
    place.add("The website is deployed from main.")
    place.engine.embed()
    found = place.ask(report=report)

    assert id_ in found.given
    assert told == [dict(facts) for name, facts in report.events if name == "memory_recall_not_reranked"]
    assert [not told] * 2 == ["tokens" in hit.shares for hit in found.hits]
