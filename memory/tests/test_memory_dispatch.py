"""Dispatch: operations by name, in envelopes, for callers whose identity a transport has checked."""

import asyncio
import functools
import json
import threading
from collections import UserDict
from datetime import UTC, datetime, timedelta

import attrs
import pytest

from beaver_hostspecs.testing import FrozenClock, RecordingReport, make_canary
from beaver_memory import MemoryRuntime
from beaver_memory.dispatch.decoder import decode
from beaver_memory.dispatch.dispatcher import OF_THE_RUNTIME, Dispatcher
from beaver_memory.dispatch.envelopes import InvalidFields, Problem, RequestEnvelope, Source
from beaver_memory.embedding.settings import EmbeddingSettings
from beaver_memory.filters import Filters
from beaver_memory.records import NewMemory, Owner, Store
from beaver_memory.runtime.corrections import PENDING_FROM
from beaver_memory.runtime.profile import Profile, RuntimeServices, SqliteLocation
from beaver_memory.runtime.requests import InspectionRequest, RecallRequest, SessionsRequest, WriteRequest
from beaver_memory.runtime.table import OPERATIONS, Caller
from beaver_memory.views import View

ANN, BOB = Owner(user="ann"), Owner(user="bob")
NOW = datetime(2026, 11, 19, tzinfo=UTC)
SEEN = Filters(view=View(owners=(ANN,), now=NOW))
SOURCE = Source(caller=Caller.OWNER, visible=SEEN, own=SEEN, owner=ANN)
WORDS = Profile(embedding=EmbeddingSettings(provider="none"))


class Place:
    """A memory with a dispatcher."""

    def __init__(self, runtime, report):
        self.runtime, self.report = runtime, report
        self.dispatcher = Dispatcher(runtime)

    async def ask(self, operation, request=None, *, key=None, profile=None, dispatcher=None, **source):
        envelope = RequestEnvelope(
            operation=operation,
            request={} if request is None else request,
            source=attrs.evolve(SOURCE, **source),
            profile=profile,
            idempotency_key=key,
        )
        return await (dispatcher or self.dispatcher).dispatch(envelope)


@pytest.fixture
async def place(tmp_path):
    report = RecordingReport()
    services = RuntimeServices(report=report, clock=FrozenClock(NOW))
    runtime = await MemoryRuntime.open(WORDS, SqliteLocation(state_folder=tmp_path), services)
    yield Place(runtime, report)
    await runtime.close()


def refusal(operation, body, source=SOURCE):
    """Return the problems of a request that is refused before anything is done."""
    with pytest.raises(InvalidFields) as caught:
        decode(OPERATIONS[operation], body, source)
    return caught.value.problems


def problem(response):
    (found,) = response.problems
    return found.code, found.sentence


@pytest.mark.shows("004-002", "004-006", "004-014", "004-017")
async def test_an_operation_is_carried_out_by_name(place):
    """A write and a recall by name return the fields of their reports as plain JSON data."""
    written = await place.ask("write", {"memories": [{"title": "The whale sings."}]})
    found = await place.ask("recall", {"query": "whale"})
    told = json.loads(json.dumps(attrs.asdict(found)))
    (hit,) = told["report"]["hits"]

    assert ("done", [{"id": 1, "outcome": "stored", "mentions": 1, "superseded": []}]) == (
        written.status,
        list(written.report["outcomes"]),
    )
    assert ("recall", "done", [], "embedded") == (told["operation"], told["status"], told["problems"], told["profile"])
    assert ("The whale sings.", {"tenant": "", "user": "ann", "kind": "user"}, "private", NOW.isoformat()) == (
        hit["memory"]["title"],
        hit["memory"]["owner"],
        hit["memory"]["store"],
        hit["memory"]["created_at"],
    )


@pytest.mark.shows("004-006", "004-014", "004-162")
@pytest.mark.parametrize("name", [*OPERATIONS, *OF_THE_RUNTIME])
async def test_only_the_callers_of_the_table_are_served(place, name):
    """Each operation serves the callers that the table names, and refuses the others."""
    allowed = OF_THE_RUNTIME[name] if name in OF_THE_RUNTIME else OPERATIONS[name].callers
    refused = {
        caller
        for caller in Caller
        if "not_allowed" in [each.code for each in (await place.ask(name, {"unknown": 1}, caller=caller)).problems]
    }

    assert {*Caller} - allowed == refused


@pytest.mark.shows("004-016")
async def test_a_request_narrows_and_never_widens(place):
    """The filters of a request narrow those of its source; owners and further stores cannot be named."""
    await place.ask("write", {"memories": [{"title": "The whale.", "store": "shared"}, {"title": "A whale."}]})
    low = SEEN.within(stores=[Store.SHARED])

    async def titles(narrowing, **source):
        found = await place.ask("list", {"visible": narrowing}, **source)
        return {memory["title"] for memory in found.report["memories"]}

    assert {"The whale.", "A whale."} == await titles({})
    assert {"The whale."} == await titles({"stores": ["shared"]})
    assert {"The whale."} == await titles({}, visible=low)
    assert {"The whale."} == await titles({"stores": ["private", "shared"]}, visible=low)
    assert set() == await titles({"stores": ["private"]}, visible=low)
    assert set() == await titles({}, visible=SEEN.within(owners=[BOB]))
    widened = await place.ask("list", {"visible": {"owners": [{"user": "bob"}], "now": "2020-01-01"}})
    assert ("invalid", (Problem(code="invalid", field="visible", sentence="Unknown fields: now, owners."),)) == (
        widened.status,
        widened.problems,
    )


def test_the_place_of_the_source_holds():
    """A request cannot name a project, nor leave session and agent of its source; it narrows where that names none."""
    source = attrs.evolve(SOURCE, visible=SEEN.within(project="p"))
    refused = refusal("recall", {"visible": {"project": "q"}}, source)
    made = decode(OPERATIONS["recall"], {"visible": {"session": "s"}}, source)

    assert ["visible"] == [each.field.partition(".")[0] for each in refused]
    assert RecallRequest(visible=SEEN.within(project="p", session="s")) == made


LIMITED = attrs.evolve(
    SEEN, types=("fact", "rule"), tags=("a",), file="src", scopes=("project",), after=NOW, before=NOW.replace(year=2027)
)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({}, {}),
        ({"types": ["rule", "todo"]}, {"types": ("rule",)}),
        ({"types": ["todo"]}, {"types": (), "owners": ()}),
        ({"tags": ["b"]}, {"tags": ("a", "b")}),
        ({"file": "src/x.py"}, {"file": "src/x.py"}),
        ({"file": "srcs"}, {"file": "srcs", "owners": ()}),
        ({"scopes": ["global"]}, {"scopes": (), "owners": ()}),
        ({"after": "2026-01-01"}, {}),
        ({"after": "2026-12-01"}, {"after": datetime(2026, 12, 1, tzinfo=UTC)}),
        ({"before": "2028-01-01"}, {}),
        ({"before": "2026-12-01"}, {"before": datetime(2026, 12, 1, tzinfo=UTC)}),
        ({"people": ["Bob"]}, {"people": ("Bob",)}),
        ({"lapsed": True}, {}),
    ],
)
def test_each_condition_of_a_source_holds(body, expected):
    """A request adds conditions to those of its source: where they exclude each other, no memory is visible."""
    made = decode(OPERATIONS["recall"], {"visible": body}, attrs.evolve(SOURCE, visible=LIMITED)).visible
    hidden = {"owners": ()} if "owners" in expected else {}
    wanted = attrs.evolve(
        LIMITED.within(**hidden), **{name: expected[name] for name in expected.keys() - hidden.keys()}
    )

    assert attrs.evolve(wanted, tags=()) == attrs.evolve(made, tags=())
    assert {*wanted.tags} == {*made.tags}


async def test_a_view_goes_back_and_not_ahead(place):
    """A request sees what held at an earlier time, superseded by now, and nothing that is to hold at a later one."""
    day = timedelta(days=1)
    lived = {"title": "Lived in Rome.", "created_at": str(NOW - 3 * day), "valid_until": str(NOW - day)}
    waits = {"title": "Waits for approval.", "created_at": str(NOW - 3 * day), "valid_from": str(PENDING_FROM)}
    await place.ask("write", {"memories": [lived, waits, {"title": "Likes tea.", "created_at": str(NOW - 3 * day)}]})

    async def titles(as_of):
        found = await place.ask("list", {"visible": {"as_of": str(as_of)}}, caller=Caller.HOST)
        return sorted(memory["title"] for memory in found.report["memories"])

    assert ["Likes tea.", "Lived in Rome."] == await titles(NOW - 2 * day)
    assert ["Likes tea."] == await titles(NOW) == await titles(PENDING_FROM) == await titles(PENDING_FROM + day / 2)


def test_lapsed_memories_are_shown_if_source_and_request_agree():
    """Lapsed memories are visible to a source that may see them and asks for them."""
    source = attrs.evolve(SOURCE, own=attrs.evolve(SEEN, lapsed=True))
    asked = [
        decode(OPERATIONS["forget"], {"ids": [1], **each}, source).own.lapsed
        for each in ({}, {"own": {"lapsed": True}})
    ]

    assert [False, True] == asked


@pytest.mark.parametrize("name", ["export", "inspect"])
async def test_every_owner_is_for_those_who_may_name_owners(place, name):
    """A caller that may not name other owners can neither export nor list them."""
    await place.ask("write", {"memories": [{"title": "Of Bob."}]}, owner=BOB)
    refused = await place.ask(name, {"every_owner": True})
    allowed = await place.ask(name, {"every_owner": True}, every_owner=True)
    plain = await place.ask(name)

    assert ["every_owner"] == [each.field for each in refused.problems]
    assert ("done", True, False) == (allowed.status, "bob" in str(allowed.report), "bob" in str(plain.report))


def test_only_json_types_are_decoded():
    """A tuple, or a finished record with another owner, is no JSON and is refused."""
    for memories in ((NewMemory(title="x", owner=BOB),), [NewMemory(title="x", owner=BOB)]):
        assert refusal("write", {"memories": memories})


def test_a_writer_writes_for_its_own_user():
    """A memory belongs to the owner of the source and to its store, unless the source may name others."""
    body = {"memories": [{"title": "Tea."}]}
    mine = decode(OPERATIONS["write"], body, attrs.evolve(SOURCE, store=Store.SHARED))
    other = {"memories": [{"title": "Tea.", "owner": {"user": "bob"}}]}
    whole = decode(OPERATIONS["import"], other, attrs.evolve(SOURCE, every_owner=True))

    assert WriteRequest(memories=[NewMemory(title="Tea.", owner=ANN, store="shared", source="user")]) == mine
    assert (Owner(user="bob"),) == tuple(memory.owner for memory in whole.memories)
    assert (
        Problem(code="not_yours", field="memories[0].owner", sentence="This caller may not name it; leave it out."),
    ) == refusal("write", other)


@pytest.mark.parametrize("caller", list(Caller))
def test_no_caller_names_a_uid(caller):
    """A memory of a request that names its uid is refused to every caller."""
    source, named, fields = attrs.evolve(SOURCE, caller=caller), {"title": "Tea.", "uid": "0" * 32}, []
    for name, body in (
        ("write", {"memories": [{"title": "Rome."}, named]}),
        ("import", {"memories": [named]}),
        ("correct", {"ids": [1], "memory": named}),
    ):
        fields += [(each.code, each.field) for each in refusal(name, body, source)]

    assert [("not_yours", field) for field in ("memories[1].uid", "memories[0].uid", "memory.uid")] == fields


def test_a_writer_names_only_stores_that_it_may_change():
    """A memory for a store that the source may not change is refused."""
    source = attrs.evolve(SOURCE, own=SEEN.within(stores=["social"]), store=Store.SOCIAL)
    assert ["memories[0].store"] == [
        each.field for each in refusal("write", {"memories": [{"title": "Tea.", "store": "private"}]}, source)
    ]


@pytest.mark.parametrize(("caller", "writer"), [("owner", "user"), ("host", "agent"), ("model", "agent")])
def test_the_caller_is_the_writer(caller, writer):
    """A memory and a correction that name no writer get that of their source."""
    source = attrs.evolve(SOURCE, caller=Caller(caller))
    written = decode(OPERATIONS["write"], {"memories": [{"title": "Tea."}]}, source)
    corrected = decode(OPERATIONS["correct"], {"ids": [1], "memory": {"title": "Tea."}}, source)

    assert [writer] * 3 == [written.memories[0].source, corrected.source, corrected.memory.source]


@pytest.mark.parametrize("given", ["user", " User", "auto_capture"])
def test_a_model_names_neither_the_user_nor_capture(given):
    """A model that names another writer than itself is refused; the memories may come from a document."""
    model, fields = attrs.evolve(SOURCE, caller=Caller.MODEL), []
    memory = {"title": "Tea.", "source": given}
    for name, body in (
        ("write", {"memories": [{"title": "Rome.", "source": "atlas.pdf"}, memory]}),
        ("correct", {"ids": [1], "text": "Tea.", "source": given}),
        ("correct", {"ids": [1], "memory": memory}),
    ):
        fields += [(each.code, each.field) for each in refusal(name, body, model)]
        decode(OPERATIONS[name], body, SOURCE)

    assert [("not_yours", field) for field in ("memories[1].source", "source", "memory.source")] == fields


def test_the_owners_of_a_source_are_filled_in():
    """Sessions and counts are those of the source, unless it may name other owners."""
    assert SessionsRequest(owner=ANN) == decode(OPERATIONS["sessions"], {}, SOURCE)
    counted = InspectionRequest(owners=(ANN,), embeddings=False, figures=False)
    assert counted == decode(OPERATIONS["inspect"], {}, SOURCE)
    assert refusal("sessions", {"owner": {"user": "bob"}})
    assert refusal("inspect", {"owners": None})


@pytest.mark.parametrize("name", ["sessions", "inspect"])
async def test_facts_of_the_owner_need_the_private_store(place, name):
    """A caller that may not see the private store is refused sessions and figures."""
    refused = await place.ask(name, caller=Caller.HOST, visible=SEEN.within(stores=["social"]))

    assert ("refused", "trust") == (refused.status, refused.problems[0].code)


@pytest.mark.shows("004-165")
@pytest.mark.parametrize(
    ("name", "body", "expected"),
    [
        ("write", {}, [("memories", "It is missing.")]),
        ("write", {"memories": "tea"}, [("memories", "It must be a list.")]),
        ("write", {"memories": ["tea"]}, [("memories[0]", "It must be an object.")]),
        ("write", {"memories": [{}]}, [("memories[0].title", "It is missing.")]),
        ("write", {"memories": [{"title": " "}]}, [("memories[0]", "It does not fit: title must not be empty.")]),
        ("write", {"memories": [{"title": 5}]}, [("memories[0].title", "It must be a text.")]),
        ("write", {"memories": [], "mention": 1}, [("mention", "It must be true or false.")]),
        (
            "write",
            {"memories": [{"title": "x", "scope": "world"}]},
            [("memories[0].scope", "It must be one of session, project, global.")],
        ),
        (
            "write",
            {"memories": [{"title": "x", "created_at": "soon"}]},
            [("memories[0].created_at", "It must be an ISO date and time such as 2026-11-18T09:30:00+00:00.")],
        ),
        (
            "write",
            {"memories": [{"title": "x", "confidence": True}]},
            [("memories[0].confidence", "It must be a number.")],
        ),
        ("recall", {"limit": 2.5}, [("limit", "It must be a whole number.")]),
        ("recall", {"limit": True}, [("limit", "It must be a whole number.")]),
        ("recall", {"limit": 0}, [("", "It does not fit: 'limit' must be >= 1.")]),
        ("recall", {"max_tokens": "many"}, [("max_tokens", "It must be a whole number.")]),
        (
            "recall",
            {"visible": {"stores": ["hidden"]}},
            [("visible.stores[0]", "It must be one of private, shared, social.")],
        ),
        ("recall", {"visible": 3}, [("visible", "It must be an object.")]),
        ("recall", {"depth": 1, "width": 2}, [("", "Unknown fields: depth, width.")]),
        ("forget", {"ids": [-1]}, [("", "It does not fit: each entry of ids is a positive whole number.")]),
    ],
)
async def test_wrong_fields_are_named(place, name, body, expected):
    """Each wrong field is named by its path, with what it must be."""
    response = await place.ask(name, body)

    assert ("invalid", {}) == (response.status, response.report)
    assert [("invalid", *each) for each in expected] == [
        (each.code, each.field, each.sentence) for each in response.problems
    ]


def test_all_wrong_fields_are_named_at_once_up_to_a_limit():
    """A request with many wrong fields gets many problems, and no more than twenty."""
    assert [f"memories[{number}].title" for number in range(20)] == [
        each.field for each in refusal("write", {"memories": [{"title": number} for number in range(50)]})
    ]


def nested(levels):
    """A list of lists, in a request of so many levels."""
    return {"memories": functools.reduce(lambda inner, _: [inner], range(levels - 2), [])}


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ({"memories": [0] * 1_000_000}, "The request holds more than 1,000,000 values."),
        (nested(21), "The request has more than 20 levels."),
        ({str(number): 0 for number in range(1_001)}, "An object in the request has more than 1,000 fields."),
    ],
)
async def test_a_request_that_is_too_large_is_refused_before_it_is_decoded(place, body, sentence):
    """A request beyond the bounds is invalid with one problem, with or without a key, also for `close`."""
    expected = ("invalid", (Problem(code="too_large", sentence=sentence),))
    responses = [await place.ask("write", body, key=key) for key in (None, "k", "k")]
    responses.append(await place.ask("close", body))

    assert [expected] * 4 == [(each.status, each.problems) for each in responses]


async def test_a_request_within_the_bounds_is_decoded(place):
    """A request with the most levels, the most fields and almost the most values gets problems of its fields."""
    deep = await place.ask("write", nested(20))
    wide = await place.ask("write", {str(number): 0 for number in range(1_000)})
    long = await place.ask("write", {"memories": [0] * 900_000})

    assert [1, 2, 20] == [len(each.problems) for each in (deep, wide, long)]
    assert {"invalid"} == {problem.code for each in (deep, wide, long) for problem in each.problems}


@pytest.mark.parametrize("body", [[], "text", None, {"memories": [{1: 2}]}])
async def test_a_request_that_is_no_object_is_invalid(place, body):
    """A body that is no JSON object, or has a name that is no text, is invalid."""
    envelope = RequestEnvelope(operation="write", request=body, source=SOURCE)

    assert "invalid" == (await place.dispatcher.dispatch(envelope)).status


class Watched(UserDict):
    """A body that notes the threads which read it."""

    def __init__(self, body):
        super().__init__(body)
        self.threads = set()

    def __getitem__(self, name):
        self.threads.add(threading.get_ident())
        return super().__getitem__(name)


@pytest.mark.parametrize("key", [None, "k"])
async def test_the_event_loop_reads_no_body(place, key):
    """A body is measured, decoded and compared in threads, so that a large one does not stop the event loop."""
    body = Watched({"memories": [{"title": "Tea."}]})
    response = await place.ask("write", body, key=key)

    assert ("done", True, False) == (response.status, bool(body.threads), threading.get_ident() in body.threads)


async def test_problems_do_not_repeat_values(place):
    """A credential in any field of a request, or as the name of a field, is in no problem."""
    canary = make_canary()
    secret = canary.reveal()
    for body in (
        {"memories": [{"title": [secret]}]},
        {"memories": [{"title": "x", "scope": secret}]},
        {"memories": [{"title": "x", "created_at": secret}]},
        {"memories": [{"title": "x", "confidence": secret}]},
        {"memories": secret},
        {secret: 1},
        {"memories": [{"title": f"the key {secret}"}]},
    ):
        response = await place.ask("write", body)
        canary.assert_clean(repr(response), str(response.problems))
        assert response.status in {"invalid", "refused"}


@pytest.mark.shows("004-017")
async def test_a_refusal_is_a_response(place):
    """A write that a gate refuses is answered as refused, with the gate's reason."""
    response = await place.ask("write", {"memories": [{"title": f"the key {make_canary().reveal()}"}]})

    assert (
        "refused",
        (
            "secret",
            "The text holds a secret (held secret); leave it out, or name the place where it is kept. Secrets are never remembered.",
        ),
    ) == (response.status, problem(response))


async def test_an_unknown_operation_names_the_known_ones(place):
    """A request for an operation that does not exist is invalid, and lists those that do."""
    response = await place.ask("teleport")

    assert ("invalid", "unknown_operation") == (response.status, response.problems[0].code)
    assert ", ".join([*OPERATIONS, *OF_THE_RUNTIME]) in response.problems[0].sentence


@pytest.mark.shows("004-016")
async def test_another_profile_is_refused(place):
    """A caller that expects another profile is refused, and one that names this profile is served."""
    assert ("another_profile", "This memory has the profile embedded.") == problem(
        await place.ask("capabilities", profile="server")
    )
    assert "done" == (await place.ask("capabilities", profile="embedded")).status


@pytest.mark.shows("004-164")
async def test_an_operation_without_its_service_is_refused(place):
    """An operation whose service is missing gets a structured rejection, and `capabilities` tells it beforehand."""
    maintain = attrs.evolve(OPERATIONS["recover"], name="maintain", services=frozenset({"small_model"}))
    response = await place.ask("maintain", dispatcher=Dispatcher(place.runtime, {"maintain": maintain}))

    assert ("refused", ("not_available", "`maintain` is not available: it needs small_model.")) == (
        response.status,
        problem(response),
    )


@pytest.mark.shows("004-162")
async def test_capabilities_and_close_are_operations(place):
    """The catalogue is read, and the memory closed, by name; afterwards an operation fails with its reason."""
    catalogue = await place.ask("capabilities", caller=Caller.MODEL)
    wrong = await place.ask("close", {"reason": 5})
    closed = await place.ask("close", {"reason": "test"})
    after = await place.ask("list")

    assert {"visible": True, "reason": ""} == catalogue.report["operations"]["write"]
    assert ("reason", "It must be a text.") == (wrong.problems[0].field, wrong.problems[0].sentence)
    assert ("done", {"reason": "test", "outcome": "closed"}) == (closed.status, closed.report)
    assert ("failed", "The memory is not open; call it between `open` and `close`.") == (
        after.status,
        after.problems[0].sentence,
    )


async def test_a_fault_shows_its_text_to_the_owner_alone(place, tmp_path):
    """A damaged store is a failure with its category; only the owner reads the path of the database."""
    await place.ask("write", {"memories": [{"title": "Tea."}]})
    for name in ("memory.db", "memory.db-wal"):
        (tmp_path / name).rename(tmp_path / f"away-{name}")
    owner, host = [await place.ask("write", {"memories": [{"title": "Milk."}]}, caller=each) for each in
                   (Caller.OWNER, Caller.HOST)]  # fmt: skip

    assert ("failed", "failed") == (owner.status, host.status)
    assert (True, False) == (str(tmp_path) in owner.problems[0].sentence, str(tmp_path) in host.problems[0].sentence)


# --- Idempotency ------------------------------------------------------------------------------------------------------


@pytest.mark.shows("004-016")
async def test_a_repeated_key_is_carried_out_once(place):
    """A second request with the same key and body gets the first response, and is marked as replayed."""
    body = {"memories": [{"title": "Tea."}]}
    first, second = await place.ask("write", body, key="k"), await place.ask("write", body, key="k")
    plain = await place.ask("write", body)

    assert attrs.evolve(first, replayed=True) == second
    assert 2 == plain.report["outcomes"][0]["mentions"]


async def test_requests_with_one_key_at_once_are_carried_out_once(place):
    """Several requests with one key at the same time share one response."""
    body = {"memories": [{"title": "Tea."}]}
    responses = await asyncio.gather(*(place.ask("write", body, key="k") for _ in range(5)))

    assert [False, True, True, True, True] == sorted(each.replayed for each in responses)
    assert {1} == {each.report["outcomes"][0]["mentions"] for each in responses}


async def test_a_key_belongs_to_one_request_of_one_owner(place):
    """Another request with a used key is refused; another owner may use the same key."""
    await place.ask("write", {"memories": [{"title": "Tea."}]}, key="k")
    other = await place.ask("write", {"memories": [{"title": "Milk."}]}, key="k")
    bob = await place.ask("write", {"memories": [{"title": "Milk."}]}, key="k", owner=BOB)

    assert ("key_in_use", "The idempotency key belongs to another request; use a new one.") == problem(other)
    assert ("done", False) == (bob.status, bob.replayed)


async def test_a_response_is_not_replayed_to_a_caller_with_other_rights(place):
    """A key answers the same request of a source with the same rights only."""
    await place.ask("write", {"memories": [{"title": "The whale."}]})
    first = await place.ask("project", {"user_query": "whale"}, key="k")
    low = await place.ask("project", {"user_query": "whale"}, key="k", visible=SEEN.within(stores=["social"]))
    later = await place.ask("project", {"user_query": "whale"}, key="k", visible=SEEN.within(now=NOW.replace(day=20)))

    assert ("done", "refused", True) == (first.status, low.status, later.replayed)
    assert "whale" not in str(low)


async def test_a_corrected_request_may_use_its_key_again(place):
    """A key whose request was invalid is free for the corrected request."""
    wrong = await place.ask("write", {"memories": [{"title": 5}]}, key="k")
    right = await place.ask("write", {"memories": [{"title": "Tea."}]}, key="k")

    assert ("invalid", "done", False) == (wrong.status, right.status, right.replayed)


async def test_a_cancelled_caller_does_not_undo_the_request(place):
    """A request whose caller gives up is still carried out once, and its key returns the response."""
    body = {"memories": [{"title": "Tea."}]}
    asked = asyncio.ensure_future(place.ask("write", body, key="k"))
    await asyncio.sleep(0)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    again = await place.ask("write", body, key="k")

    assert (1, True) == (again.report["outcomes"][0]["mentions"], again.replayed)
