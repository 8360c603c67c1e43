"""Dispatch under requests of any shape: problems, agreement of names and methods, sources, and idempotency keys."""

import asyncio
import itertools
import json
from collections import Counter
from datetime import UTC, datetime, timedelta

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beaver_hostspecs.testing import FrozenClock, RecordingReport
from beaver_memory import MemoryRuntime
from beaver_memory.capture.records import Utterance
from beaver_memory.dispatch.dispatcher import Dispatcher, encode
from beaver_memory.dispatch.envelopes import RequestEnvelope, Source
from beaver_memory.embedding.settings import EmbeddingSettings
from beaver_memory.errors import InvalidRequest, OperationUnavailable
from beaver_memory.filters import Filters
from beaver_memory.records import NewMemory, Owner, Store
from beaver_memory.runtime.profile import Profile, RuntimeServices, SqliteLocation
from beaver_memory.runtime.requests import ListRequest, WriteRequest
from beaver_memory.runtime.table import OPERATIONS, Caller
from beaver_memory.testing.store_cases.kit import looking
from beaver_memory.views import ALL_PROJECTS

NOW = datetime(2026, 11, 19, tzinfo=UTC)
WORDS = Profile(embedding=EmbeddingSettings(provider="none"))


def sees(*owners, **narrowed):
    return looking(**{"owners": owners, "now": NOW} | narrowed)


def source(owner, **fields):
    return Source(caller=Caller.OWNER, **{"visible": sees(owner), "own": sees(owner), "owner": owner, **fields})


class Place:
    """Runtimes on one loop, each with its dispatcher; every example has a tenant of its own."""

    def __init__(self, folder):
        self.folder = folder
        self.runner = asyncio.Runner()
        self.opened = []
        self.tenants = itertools.count()

    def open(self):
        services = RuntimeServices(report=RecordingReport(), clock=FrozenClock(NOW))
        location = SqliteLocation(state_folder=self.folder / str(len(self.opened)))
        location.state_folder.mkdir()
        runtime = self.runner.run(MemoryRuntime.open(WORDS, location, services))
        self.opened.append(runtime)
        return runtime, Dispatcher(runtime)

    def owner(self):
        return Owner(tenant=f"t{next(self.tenants)}", user="ann")

    def close(self):
        for runtime in self.opened:
            self.runner.run(runtime.close())
        self.runner.close()


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    made = Place(tmp_path_factory.mktemp("state"))
    yield made
    made.close()


# --- Any JSON -------------------------------------------------------------------------------------------------------

ODD = st.sampled_from(["", " ", "\x00", "\ud800", "\ufffd", '"', "*", "2026-11-19", "private", "shared", "x" * 2_000])
NUMBERS = st.sampled_from([0, 1, -1, 2, 2**31, 2**63, 2**64, 10**30, 0.5, 1e300])
SCALARS = st.none() | st.booleans() | NUMBERS | ODD | st.text(max_size=8)
NAMES = sorted({name for each in OPERATIONS.values() for name in attrs.fields_dict(each.request)})
OF_MEMORIES = sorted({*attrs.fields_dict(NewMemory), *attrs.fields_dict(Filters)})
JSON = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(OF_MEMORIES) | st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=12,
)


@st.composite
def any_request(draw):
    """An operation, and a body with mostly its own fields."""
    name = draw(st.sampled_from([*OPERATIONS]))
    own = st.sampled_from([*attrs.fields_dict(OPERATIONS[name].request)])
    return name, draw(st.dictionaries(own | st.sampled_from(NAMES) | st.text(max_size=5), JSON, max_size=4))


@pytest.mark.shows("004-165")
def test_any_json_is_answered(place):
    """Any body gets a response that is JSON: a report, or problems with a code and a sentence each."""
    _, dispatcher = place.open()

    @settings(deadline=None)
    @given(request=any_request(), caller=st.sampled_from(Caller), key=st.none() | st.text(max_size=3))
    def check(request, caller, key):
        name, body = request
        envelope = RequestEnvelope(
            operation=name, request=body, source=attrs.evolve(source(place.owner()), caller=caller), idempotency_key=key
        )
        response = place.runner.run(dispatcher.dispatch(envelope))
        json.dumps(attrs.asdict(response))
        assert (response.status == "done") == (response.problems == ())
        assert all(each.code and each.sentence for each in response.problems)

    check()


# --- Names and methods ----------------------------------------------------------------------------------------------

TITLES = st.sampled_from(["Tea at four.", "Tea at five.", "The whale sings.", "Billing runs on stable."])
QUERIES = st.sampled_from(["tea", "whale billing", "", '"the whale" sing*'])
MEMORIES = st.lists(
    st.fixed_dictionaries(
        {"title": TITLES},
        optional={
            "type": st.sampled_from(["fact", "rule"]),
            "tags": st.lists(st.sampled_from(["a", "b"]), max_size=2),
            "related_people": st.just(["Ann"]),
            "store": st.sampled_from([*Store]).map(str),
            "created_at": st.just("2026-11-18T10:00:00+00:00"),
        },
    ),
    max_size=3,
)
NARROWING = st.fixed_dictionaries(
    {}, optional={"types": st.just(["fact"]), "tags": st.just(["a"]), "stores": st.just(["private", "shared"])}
)
SOME = st.integers(1, 5)
PLACES = st.lists(st.integers(0, 3), max_size=3)
"""Places among the ids of the example."""

SAID = st.lists(
    st.sampled_from(["I prefer tea.", "We decided to deploy from stable.", "Hello."]).map(lambda text: {"text": text}),
    max_size=2,
)

FIELDS = {
    "write": st.fixed_dictionaries({"memories": MEMORIES}, optional={"mention": st.booleans()}),
    "recall": st.fixed_dictionaries(
        {"query": QUERIES, "visible": NARROWING},
        optional={"limit": SOME, "operators": st.booleans(), "explain": st.booleans(), "minimum_score": st.just(0.2)},
    ),
    "project": st.fixed_dictionaries(
        {"user_query": QUERIES, "visible": NARROWING}, optional={"limit": SOME, "system_max_len": st.integers(80, 200)}
    ),
    "get": st.fixed_dictionaries({"ids": PLACES, "visible": NARROWING}),
    "list": st.fixed_dictionaries({"visible": NARROWING}, optional={"limit": SOME}),
    "timeline": st.fixed_dictionaries({"anchor": SOME}, optional={"before": SOME, "after": SOME}),
    "history": st.fixed_dictionaries({"id": SOME}),
    "people": st.fixed_dictionaries({"visible": NARROWING}, optional={"query": st.just("an"), "limit": SOME}),
    "sessions": st.fixed_dictionaries({}, optional={"limit": SOME}),
    "inspect": st.fixed_dictionaries({"figures": st.just(False)}, optional={"check": st.booleans()}),
    "pin": st.fixed_dictionaries({"ids": PLACES, "own": NARROWING}, optional={"pinned": st.booleans()}),
    "forget": st.fixed_dictionaries(
        {"ids": PLACES, "own": NARROWING},
        optional={"query": QUERIES, "session": st.just("s"), "every": st.booleans(), "dry_run": st.booleans()},
    ),
    "export": st.fixed_dictionaries({"visible": NARROWING}, optional={"limit": SOME, "cursor": st.just("?")}),
    "damaged": st.fixed_dictionaries({"visible": NARROWING}, optional={"limit": SOME, "after": SOME}),
    "import": st.fixed_dictionaries({"memories": MEMORIES}),
    "embed": st.fixed_dictionaries({}, optional={"limit": SOME}),
    "recover": st.fixed_dictionaries({}, optional={"reindex": st.booleans(), "embed": st.booleans()}),
    "capture": st.fixed_dictionaries({"said": SAID}, optional={"dry_run": st.booleans()}),
    "correct": st.fixed_dictionaries({"ids": PLACES, "own": NARROWING, "text": TITLES}),
    "undo": st.fixed_dictionaries({"own": NARROWING}),
    "pending": st.fixed_dictionaries({"own": NARROWING}, optional={"limit": SOME}),
    "review": st.fixed_dictionaries({"id": SOME, "choice": st.sampled_from(["accept", "reject"])}),
}
"""Bodies that fit, by operation; a new operation adds its own here."""

STEPS = st.lists(st.sampled_from([*FIELDS]).flatmap(lambda name: st.tuples(st.just(name), FIELDS[name])), max_size=6)


def with_ids(body, ids):
    """A body whose places are ids of the example."""
    named = {name: body[name] for name in body.keys() & {"anchor", "id"}}
    listed = {"ids": [ids[each % len(ids)] for each in body["ids"]]} if "ids" in body else {}
    return body | listed | {name: ids[place % len(ids)] for name, place in named.items()}


def record(operation, body, owner):
    """The request that a caller of the method would make."""
    fields = attrs.fields_dict(operation.request)
    given = {name: sees(owner, **body.get(name, {})) for name in fields.keys() & {"visible", "own"}}
    given |= dict.fromkeys(fields.keys() & {"owner"}, owner) | dict.fromkeys(fields.keys() & {"owners"}, (owner,))
    if "memories" in body:
        moments = [{"created_at": datetime.fromisoformat(each["created_at"])} if "created_at" in each else {}
                   for each in body["memories"]]  # fmt: skip
        new = zip(body["memories"], moments, strict=True)
        mine = {"owner": owner, "store": "private", "source": "user"}
        given["memories"] = [NewMemory(**mine | each | moment) for each, moment in new]
    if "said" in body:
        given["said"] = [Utterance(**each) for each in body["said"]]
    return operation.request(**body | given)


async def by_method(runtime, operation, body, owner):
    """What the method answers: its status, and its report or the text of its error."""
    try:
        report = await getattr(runtime, operation.method)(record(operation, body, owner))
    except OperationUnavailable as error:
        return "refused", str(error)
    except InvalidRequest as error:
        return "invalid", str(error)
    return "done", timeless(encode(report))


async def by_name(dispatcher, operation, body, owner):
    """What the dispatcher answers, likewise."""
    of = source(owner, every_owner=True)
    response = await dispatcher.dispatch(RequestEnvelope(operation=operation.name, request=body, source=of))
    told = timeless(response.report) if response.status == "done" else response.problems[0].sentence
    return response.status, told


def timeless(report):
    """A report without what upkeep writes at any moment, and without random uids."""
    left_out = {"last_accessed_at": None, "uid": None}
    return json.loads(json.dumps(report, default=str), object_hook=lambda each: {**each, **left_out})


@pytest.mark.shows("004-162", "004-238")
def test_every_operation_by_name_is_its_method(place):
    """The same steps through the methods of one memory and by name in another have the same answers."""
    (runtime, _), (_, dispatcher) = place.open(), place.open()

    @settings(deadline=None)
    @given(steps=STEPS)
    def check(steps):
        owner, ids = place.owner(), [10**6]
        for name, template in steps:
            operation, body = OPERATIONS[name], with_ids(template, ids)
            expected = place.runner.run(by_method(runtime, operation, body, owner))
            assert expected == place.runner.run(by_name(dispatcher, operation, body, owner))
            if name in {"write", "import"}:
                ids += [each["id"] for each in expected[1]["outcomes"]]

    check()


@pytest.mark.shows("003-008")
def test_no_operation_is_left_out():
    """Each row of the table is a method of `MemoryRuntime`, and has bodies above."""
    assert {*FIELDS} == {*OPERATIONS}
    assert [] == [each.method for each in OPERATIONS.values() if not hasattr(MemoryRuntime, each.method)]


# --- Sources --------------------------------------------------------------------------------------------------------

DAYS = st.integers(-3, 3).map(lambda days: NOW + timedelta(days=days))
ONE = {"session": ["", "s", "t"], "agent": ["", "a", "b"], "file": ["", "src", "src/a.py"]}
MANY = {"types": ["fact", "rule"], "tags": ["x", "y"], "people": ["Ann", "Bob"], "scopes": ["project", "global"],
        "sources": ["agent", "user"], "stores": ["private", "shared", "social"]}  # fmt: skip
CONDITIONS = {name: st.sampled_from(values) for name, values in ONE.items()}
CONDITIONS |= {name: st.lists(st.sampled_from(values), max_size=2) for name, values in MANY.items()}
CONDITIONS |= {"after": DAYS, "before": DAYS, "lapsed": st.booleans()}
PROJECTS = st.sampled_from([None, "p", "q", ALL_PROJECTS])
SOURCES = st.fixed_dictionaries({}, optional={**CONDITIONS, "project": PROJECTS})


def world():
    """Memories that differ in all that a condition looks at."""
    owners = [Owner(user=user) for user in ("ann", "bob", "")]
    for number in range(90):
        pick = lambda values, step, number=number: values[(number // step) % len(values)]  # noqa: E731 - one line each
        yield NewMemory(
            title=f"Tea {number}.",
            owner=pick(owners, 1),
            store=pick(MANY["stores"], 3),
            type=pick(MANY["types"], 2),
            tags=[pick(MANY["tags"], 5)],
            related_people=[pick(MANY["people"], 7)],
            related_files=[pick(["src/a.py", "docs/b.md"], 4)],
            scope=pick(["project", "session", "global"], 2),
            project=pick(["p", "q"], 3),
            session=pick(["s", "t"], 5),
            agent=pick(["", "a", "b"], 4),
            source=pick(MANY["sources"], 11),
            created_at=NOW + timedelta(days=number % 5 - 3, hours=number % 7),
            expires_at=pick([None, None, NOW - timedelta(hours=1)], 6),
            valid_until=pick([None, None, None, NOW - timedelta(hours=2)], 8),
        )


async def shown(dispatcher, of, name, body):
    """The titles that an operation shows to a source."""
    response = await dispatcher.dispatch(RequestEnvelope(operation=name, request=body, source=of))
    found = response.report.get("memories") or [each["memory"] for each in response.report.get("hits", ())]
    return response.status, {each["title"] for each in found}


@pytest.fixture(scope="module")
def dispatcher(place):
    """Dispatches to a memory that holds the world."""
    runtime, made = place.open()
    place.runner.run(runtime.write(WriteRequest(memories=world())))
    return made


VALUES = ONE | {name: [[], values[:1], values[1:2], values[:2]] for name, values in MANY.items()}
VALUES |= {"after": [NOW - timedelta(days=days) for days in (3, 1)], "lapsed": [False, True]}
VALUES |= {"before": [NOW - timedelta(days=days) for days in (2, 0)]}


@pytest.mark.parametrize("name", VALUES)
def test_each_condition_of_a_request_only_narrows_its_source(place, dispatcher, name):
    """For each two values of a condition, a request with one shows only memories that a source with the other sees."""
    seen = {}
    for mine, asked in itertools.product(VALUES[name], repeat=2):
        of = source(Owner(user="ann"), visible=sees(Owner(user="ann"), **{name: mine}))
        told = asked.isoformat() if isinstance(asked, datetime) else asked
        whole, part = (
            place.runner.run(shown(dispatcher, of, "list", {"limit": 1_000, "visible": narrowing}))
            for narrowing in ({"lapsed": True}, {name: told})
        )
        assert ("done", part[1] - whole[1]) == (part[0], set())
        seen[str(mine)] = len(whole[1])
    assert len({*seen.values()}) > 1


@settings(deadline=None)
@given(
    conditions=SOURCES,
    users=st.sampled_from([("ann",), ("ann", ""), ("bob",), ()]),
    body=st.fixed_dictionaries({}, optional=CONDITIONS),
)
def test_a_request_only_narrows_its_source(place, dispatcher, conditions, users, body):
    """Whatever conditions a request adds, its listing, recall and export show only memories that its source sees."""
    visible = sees(*(Owner(user=user) for user in users), **conditions)
    of = source(Owner(user="ann"), visible=visible)
    narrowed = {name: each.isoformat() if isinstance(each, datetime) else each for name, each in body.items()}
    _, whole = place.runner.run(shown(dispatcher, of, "list", {"limit": 1_000, "visible": {"lapsed": True}}))
    for name, more in {"list": {"limit": 1_000}, "recall": {"query": "tea", "limit": 90}, "export": {}}.items():
        status, part = place.runner.run(shown(dispatcher, of, name, {"visible": narrowed, **more}))
        assert ("done", set()) == (status, part - whole)


# --- Keys -----------------------------------------------------------------------------------------------------------


def keyed(owner, key, title):
    body = {"memories": [{"title": title}]}
    return RequestEnvelope(operation="write", request=body, source=source(owner), idempotency_key=key)


async def all_at_once(dispatcher, owner, calls):
    """Send all requests, let some callers give up, and wait until each key is answered."""
    tasks = [asyncio.ensure_future(dispatcher.dispatch(keyed(owner, key, title))) for key, title, _ in calls]
    await asyncio.sleep(0)
    for task, (_, _, gives_up) in zip(tasks, calls, strict=True):
        if gives_up:
            task.cancel()
    responses = await asyncio.gather(*tasks, return_exceptions=True)
    for key, title in firsts(calls).items():
        await dispatcher.dispatch(keyed(owner, key, title))
    return ["given up" if isinstance(each, asyncio.CancelledError) else each.status for each in responses]


def firsts(calls):
    """The first title of each key."""
    return {key: title for key, title, _ in reversed(calls)}


def expected(calls):
    for key, title, gives_up in calls:
        yield "given up" if gives_up else "done" if firsts(calls)[key] == title else "refused"


KEYED = st.tuples(st.sampled_from(["k", "l", "m"]), st.sampled_from(["Tea.", "Milk."]), st.booleans())


@pytest.mark.shows("004-016")
def test_a_key_counts_once_under_concurrency(place):
    """Requests at once, some given up: each key carries out its first request once, and refuses another one."""
    runtime, dispatcher = place.open()

    async def mentions(owner):
        found = await runtime.list(ListRequest(visible=sees(owner)))
        return {each.title: each.mention_count for each in found.memories}

    @settings(deadline=None)
    @given(calls=st.lists(KEYED, max_size=8))
    def check(calls):
        owner = place.owner()
        assert [*expected(calls)] == place.runner.run(all_at_once(dispatcher, owner, calls))
        assert Counter(firsts(calls).values()) == place.runner.run(mentions(owner))

    check()
