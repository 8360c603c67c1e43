"""The reading tools: from rows to whole memories, within the visibility of the turn."""

import contextlib
from datetime import timedelta

import apsw
import pytest

from beaver_hooks_local.tools import search_tools
from beaver_hooks_local.tools.schemas import SCHEMAS, checked
from beaver_hostspecs.testing import RecordingReport, make_turn
from beaver_memory.layers import Layer
from beaver_memory.records import NewMemory, Owner, SessionSummary
from beaver_memory.views import Reach

TOOLS = {
    "memory_search": search_tools.search,
    "memory_timeline": search_tools.timeline,
    "memory_get": search_tools.get,
    "memory_history": search_tools.history,
    "memory_people": search_tools.people,
    "memory_sessions": search_tools.sessions,
}
HOUR = timedelta(hours=1)


def add(memory, *titles, **fields):
    fields = {"owner": Owner(user="ann"), **fields}
    start = memory.clock.now() - timedelta(days=1)
    new = [
        NewMemory(**{"title": title, "created_at": start + HOUR * number, **fields})
        for number, title in enumerate(titles)
    ]
    return memory.operations.engine.add(new)


def use(memory, tool, report=None, turn=None, **arguments):
    turn = turn or make_turn(user="ann", trust="full")
    return TOOLS[tool](memory, checked(arguments, SCHEMAS[tool]), turn, report or RecordingReport())


def ids(answer):
    return [row["id"] for row in answer["results"]]


def damage(memory, id_):
    with contextlib.closing(apsw.Connection(str(memory.operations.engine.store.path))) as connection:
        connection.execute("UPDATE observations SET title = 'changed' WHERE id = ?", (id_,))


def test_search(memory):
    """`memory_search` returns rows without the narrative, and reports the candidates."""
    report = RecordingReport()
    (id_,) = add(memory, "Billing is deployed from stable.", narrative="Because main is moving.", type="decision")
    add(memory, "Ann likes tea.")
    answer = use(memory, "memory_search", report, query="billing branch")
    (row,) = answer["results"]

    assert 1 == answer["count"]
    assert {"id": id_, "type": "decision", "store": "private", "title": "Billing is deployed from stable."} == {
        name: row[name] for name in ("id", "type", "store", "title")
    }
    assert {"when", "score", "tokens"} == row.keys() - {"id", "type", "store", "title"}
    assert "moving" not in str(answer)
    assert [str(id_)] == [each for each, _ in report.candidate_lists[0]]


@pytest.mark.shows("002-060")
def test_search_without_a_query(memory):
    """`memory_search` without a query returns the newest memories first, without scores."""
    _, two, three = add(memory, "one", "two", "three")
    answer = use(memory, "memory_search", limit=2)

    assert ([three, two], False) == (ids(answer), "score" in answer["results"][0])


@pytest.mark.shows("002-065", "002-066")
def test_search_filters(memory):
    """Stores, types, people, file and time narrow the results of `memory_search`."""
    (fix,) = add(memory, "The build is mended.", type="fix", related_files=("src/a/b.py",), related_people=("Ann Lee",))
    (fact,) = add(memory, "The build is slow.", type="fact", store="shared", created_at=memory.clock.now())
    today = (memory.clock.now() - HOUR).isoformat()

    def found(**more):
        return ids(use(memory, "memory_search", query="build", **more))

    assert [{fix, fact}, [fix], [fact], [fix], [fix], [fact], [fix], []] == [
        set(found()),
        found(types=["fix"]),
        found(stores=["shared"]),
        found(people=["ann lee"]),
        found(file="src/a"),
        found(after=today),
        found(before=today),
        found(types=["fix"], stores=["shared"]),
    ]


def test_a_store_cannot_be_asked_for_beyond_trust(memory):
    """`memory_search` for a store beyond the trust of the turn finds nothing."""
    add(memory, "A private thing.")
    turn = make_turn(user="ann", trust="inner")

    assert {"count": 0, "results": []} == use(memory, "memory_search", turn=turn, query="thing", stores=["private"])


def test_no_score_tells_of_what_is_private(memory):
    """Private memories change no score that a caller with familiar trust sees."""
    familiar = make_turn(user="ann", trust="familiar")
    add(memory, "Ann likes the green garden", "rain", store="social", session="s")
    before = use(memory, "memory_search", turn=familiar, query="garden divorce")
    add(memory, *(f"Ann plans her divorce {number}" for number in range(5)), session="s")
    assert before == use(memory, "memory_search", turn=familiar, query="garden divorce")


def test_timeline(memory):
    """`memory_timeline` returns the neighbours of a memory, oldest first, and marks the memory itself."""
    given = add(memory, "one", "two", "three", "four", "five")
    answer = use(memory, "memory_timeline", anchor=given[2], before=1, after=1)

    assert given[1:4] == ids(answer)
    assert [False, True, False] == ["anchor" in row for row in answer["results"]]
    assert given == ids(use(memory, "memory_timeline", anchor=given[2]))


def test_get(memory):
    """`memory_get` returns whole memories in the requested order, without empty fields, and notes the access."""
    (one,) = add(memory, "Billing", narrative="Long.", facts=("a", "b"), tags=("t",), related_people=("Ann",))
    (two,) = add(memory, "Two\u202e")
    first, second = use(memory, "memory_get", ids=[two, one, two, 999])["observations"]
    memory.operations.write_touches()

    assert ([two, one], "Two") == ([first["id"], second["id"]], first["title"])
    assert ("Long.", ["a", "b"], ["t"], ["Ann"]) == tuple(
        second[name] for name in ("narrative", "facts", "tags", "related_people")
    )
    assert not {"expires", "speaker", "pinned", "cut"} & second.keys()
    assert memory.clock.now() == memory.operations.engine.get([one], filters(memory))[0].last_accessed_at


def filters(memory):
    return search_tools.Visibility.of_turn(make_turn(user="ann", trust="full"), Reach()).filters(memory.clock.now())


def test_long_texts_are_cut(memory):
    """A very long text is cut, and the answer and the report say so."""
    report = RecordingReport()
    (id_,) = add(memory, "Long", narrative="x" * 100_000)
    (shown,) = use(memory, "memory_get", report, ids=[id_])["observations"]

    assert (20_000, True, [("texts", 0, 1)]) == (len(shown["narrative"]), shown["cut"], report.clippings)


@pytest.mark.shows("002-008")
def test_history(memory):
    """`memory_history` shows the old and new value of each changed field, with long texts cut."""
    (id_,) = add(memory, "Billing", narrative="x" * 200)
    new = {"pinned": True, "tags": ("a", "b" * 201), "narrative": "y" * 201}
    memory.operations.engine.change(id_, filters(memory), event="PIN", **new)
    entries = use(memory, "memory_history", observation_id=id_)["history"]

    tags, narrative = [[], ["a", "b" * 200 + "..."]], ["x" * 200, "y" * 200 + "..."]
    assert {"event": "PIN", "changed": {"pinned": [False, True], "tags": tags, "narrative": narrative}} == {
        name: entries[-1][name] for name in ("event", "changed")
    }


def test_what_was_private_stays_so(memory):
    """The history of a memory that became social hides its private versions from a caller of familiar trust."""
    (id_,) = add(memory, "Ann is ill")
    for fields in ({"title": "Ann is well"}, {"title": "Ann is here", "store": "social"}, {"pinned": True}):
        memory.operations.engine.change(id_, filters(memory), event="UPDATE", **fields)
    shown = {
        trust: use(memory, "memory_history", turn=make_turn(user="ann", trust=trust), observation_id=id_)["history"]
        for trust in ("full", "familiar")
    }

    assert [[], ["title"], ["store", "title"], ["pinned"]] == [[*each.get("changed", ())] for each in shown["full"]]
    assert [shown["full"][0], shown["full"][3]] == shown["familiar"]


@pytest.mark.shows("002-050")
def test_people(memory):
    """People are listed with how often they are mentioned, all or by a part of the name."""
    add(memory, "one", "two", related_people=("Ann Lee",))
    add(memory, "three", related_people=("Bob",))

    assert [("Ann Lee", 2), ("Bob", 1)] == [
        (each["name"], each["mentions"]) for each in use(memory, "memory_people")["people"]
    ]
    assert ["Bob"] == [each["name"] for each in use(memory, "memory_people", query="bo")["people"]]


@pytest.mark.shows("002-057")
def test_sessions(memory):
    """Sessions are listed for full trust only."""
    summary = SessionSummary(session="s0", outcome="Chose stable.", created_at=memory.clock.now())
    memory.operations.engine.store.summarise(Owner(user="ann"), summary)

    assert ["s0"] == [each["session"] for each in use(memory, "memory_sessions")["sessions"]]
    for trust in ("inner", "familiar", "public"):
        assert {"count": 0, "sessions": []} == use(memory, "memory_sessions", turn=make_turn(user="ann", trust=trust))


@pytest.mark.shows("002-009")
@pytest.mark.parametrize("trust", ["full", "inner", "familiar", "public"])
@pytest.mark.parametrize("user", ["ann", "bob", None])
def test_no_tool_shows_more_than_the_turn_may_see(memory, trust, user):
    """Every tool shows the stores of the trust and the memories of the owner, and nothing else."""
    stores = {"full": 3, "inner": 2, "familiar": 1, "public": 0}[trust]
    given = []
    for owner in ("ann", "bob", ""):
        for store in ("private", "shared", "social"):
            given += add(
                memory,
                f"Heron {owner}-{store}-",
                owner=Owner(user=owner),
                store=store,
                related_people=(f"P{owner}-{store}-",),
            )
    turn = make_turn(user=user, trust=trust)
    allowed = {
        f"{owner}-{store}-" for owner in {user or "", ""} for store in ("private", "shared", "social")[3 - stores :]
    }
    answers = [
        use(memory, "memory_search", turn=turn, query="heron", limit=50),
        use(memory, "memory_search", turn=turn),
        use(memory, "memory_get", turn=turn, ids=given),
        use(memory, "memory_people", turn=turn),
        *(use(memory, "memory_timeline", turn=turn, anchor=id_, before=20, after=20) for id_ in given),
        *(use(memory, "memory_history", turn=turn, observation_id=id_) for id_ in given),
    ]
    shown = str(answers)
    every = {f"{owner}-{store}-" for owner in ("ann", "bob", "") for store in ("private", "shared", "social")}

    assert allowed == {each for each in every if f"Heron {each}" in shown}
    assert allowed == {each for each in every if f"P{each}" in shown}
    assert 3 * stores * len({user or "", ""}) // 3 == use(memory, "memory_get", turn=turn, ids=given)["count"]


def test_shown_rows_are_neutral(memory):
    """Invisible characters and line breaks in the fields of a memory do not reach the model."""
    (id_,) = add(memory, "Heron\u2066\u202e at the weir", type="fact\u202e\nrule", speaker="Ann\nBob")
    (row,) = use(memory, "memory_search", query="heron")["results"]
    (whole,) = use(memory, "memory_get", ids=[id_])["observations"]

    assert ("Heron at the weir", "fact rule") == (row["title"], row["type"])
    assert ("fact rule", "Ann Bob") == (whole["type"], whole["speaker"])


@pytest.mark.shows("003-029", "003-093")
def test_search_for_phrases_and_prefixes(memory):
    """The tool finds quoted words and beginnings of words; trust and owner hold as for other searches."""
    add(memory, "A blue whale dives.", "The whale is blue.", "Configured twice.")
    add(memory, "A blue whale of another user.", owner=Owner(user="bob"))
    public = make_turn(user="ann", trust="public")
    found = [
        use(memory, "memory_search", query=query)["results"] for query in ('"blue whale"', "config*", 'dives "blue')
    ]

    assert [["A blue whale dives."], ["Configured twice."]] == [[row["title"] for row in rows] for rows in found[:2]]
    assert 2 == len(found[2])
    assert [] == use(memory, "memory_search", turn=public, query='"blue whale"')["results"]


def test_search_without_an_index(memory, monkeypatch):
    """Where no index can be built, the tool answers by the words of the database, and says so."""
    add(memory, "A blue whale dives.")
    monkeypatch.setattr(Layer, "sources", lambda *_, **__: (_ for _ in ()).throw(MemoryError))
    found = use(memory, "memory_search", query="blue whales")

    assert "found by the words in the database only: no index could be built" == found["note"]
    assert ["A blue whale dives."] == [row["title"] for row in found["results"]]


def test_a_damaged_memory(memory):
    """Tools that are given a damaged memory name it and the remedy, at full trust alone; the others are shown."""
    one, two = add(memory, "one", "two", store="shared")
    damage(memory, two)
    inner = make_turn(user="ann", trust="inner")
    got = use(memory, "memory_get", ids=[one, two])
    notes = [got, *(use(memory, f"memory_{name}", **{field: two}) for name, field in (
        ("timeline", "anchor"), ("history", "observation_id"),
    ))]  # fmt: skip
    less = use(memory, "memory_get", turn=inner, ids=[two])

    assert [one] == [each["id"] for each in got["observations"]]
    assert [f"Memory {two} is damaged and not shown"] * 3 == [each["note"].partition(":")[0] for each in notes]
    assert "there is no memory with this id" == less["note"]
