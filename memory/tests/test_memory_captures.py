"""The operations by which a memory learns: capture, correct, undo, pending, review, over a real store."""

import json
import random
import string
from datetime import timedelta
from pathlib import Path

import attrs
import pytest

from beaver_hostspecs.testing import FrozenClock, RecordingReport, make_canary
from beaver_memory import MemoryRuntime
from beaver_memory.capture.gates.budget import Budget
from beaver_memory.capture.outcomes import ToolOutcome
from beaver_memory.capture.records import Utterance
from beaver_memory.embedding.settings import EmbeddingSettings
from beaver_memory.errors import InvalidRequest, StoreError
from beaver_memory.records import CaptureSpend, NewMemory, Owner
from beaver_memory.runtime.capture_records import (
    CaptureRequest,
    CorrectReport,
    CorrectRequest,
    PendingRequest,
    ReviewReport,
    ReviewRequest,
    UndoReport,
    UndoRequest,
)
from beaver_memory.runtime.profile import CaptureProfile, InMemoryLocation, Profile, RuntimeServices, SqliteLocation
from beaver_memory.runtime.requests import (
    ForgetRequest,
    GetRequest,
    HistoryRequest,
    InspectionRequest,
    RecallRequest,
    WriteRequest,
)
from beaver_memory.store.in_memory import Database
from beaver_memory.testing.store_cases.kit import looking
from beaver_memory.views import ALL_PROJECTS
from beaver_toolkit.redaction.redactor import Finding

ANN, BOB = Owner(user="ann"), Owner(user="bob")
SISTER = "My sister Anna lives in Lisbon with her two kids."
RULE = "Always answer in short sentences without emojis."


class Learner:
    """An open memory of one process over a database that others may open too."""

    def __init__(self, database, clock, ask=None, location=None, **capture):
        self.clock, self.report = clock, RecordingReport()
        self.profile = Profile(embedding=EmbeddingSettings(provider="none"), capture=CaptureProfile(**capture))
        self.location = location or InMemoryLocation(database=database)
        services = RuntimeServices(report=self.report, clock=clock, ask_model=ask)
        self.runtime = MemoryRuntime(self.profile, self.location, services)

    async def __aenter__(self):
        await self.runtime.start()
        return self

    async def __aexit__(self, *_):
        await self.runtime.close()

    def own(self, owner=ANN, **more):
        return looking(**{"owners": (owner,), "project": None, "now": self.clock.now()} | more)

    async def capture(self, *said, turn="t1", own=None, **fields):
        """Capture texts of the user, or utterances."""
        texts = [
            each if isinstance(each, Utterance) else Utterance(text=each, turn=turn, when=self.clock.now())
            for each in said
        ]
        request = CaptureRequest(said=texts, own=own or self.own(), **fields)
        return (await self.runtime.capture(request)).items

    async def recall(self, query, own=None, **more):
        found = await self.runtime.recall(RecallRequest(query=query, visible=own or self.own(**more)))
        return [hit.memory.title for hit in found.hits]

    async def get(self, id_, **more):
        found = await self.runtime.get(GetRequest(ids=[id_], visible=self.own(**more)))
        return next(iter(found.memories), None)

    async def pending(self):
        found = await self.runtime.pending(PendingRequest(own=self.own()))
        return [(each.memory.title, each.reason) for each in found.items]


@pytest.fixture
def clock():
    return FrozenClock()


@pytest.fixture
async def memory(clock):
    async with Learner(Database(), clock) as made:
        yield made


def ends(items):
    return [(each.kind, each.outcome, each.reason) for each in items]


@pytest.mark.shows("002-084")
async def test_a_fact_is_captured_and_found(memory):
    """A fact in a message is stored with its turn and its words, and the next statement recalls it."""
    (item,) = await memory.capture(SISTER)
    found = await memory.get(item.id)
    assert (item.outcome, item.turn, item.excerpt) == ("stored", "t1", SISTER)
    assert (found.title, found.source, found.origin, found.type, found.store) == (
        SISTER, "auto_capture", "t1", "fact", "private",
    )  # fmt: skip
    assert await memory.recall("Where does my sister live?") == [SISTER]


@pytest.mark.shows("003-127")
async def test_the_same_fact_again(memory):
    """A fact that the user repeats counts as a mention, and is stored once."""
    (first,) = await memory.capture(SISTER)
    (again,) = await memory.capture(SISTER, turn="t2")
    assert (again.outcome, again.id) == ("duplicate", first.id)
    assert (await memory.get(first.id)).mention_count == 2


@pytest.mark.shows("002-086")
async def test_a_newer_fact_supersedes(memory, clock):
    """A fact that changes ends the older one, which `as of` still finds."""
    (old,) = await memory.capture("I live in Berlin.")
    then = clock.now() + timedelta(hours=1)
    clock.advance(86_400)
    (new,) = await memory.capture("I live in Lisbon now.", turn="t2")
    assert (new.outcome, new.superseded) == ("superseded", (old.id,))
    assert await memory.recall("Where do I live?") == ["I live in Lisbon now."]
    assert await memory.recall("Where do I live?", as_of=then) == ["I live in Berlin."]


KEY = "The spare key is under the doormat."
MOVED_KEY = "The spare key is in the shed now."


async def test_a_weak_statement_that_changes_a_memory(memory, clock):
    """A statement that is too weak by itself is kept, also in a dry run, once a memory holds what it changes."""
    before = await memory.capture(MOVED_KEY, turn="t0")
    (old,) = await memory.capture(f"Remember that {KEY}")
    clock.advance(86_400)
    (dry,) = await memory.capture(MOVED_KEY, turn="t1", dry_run=True)
    (new,) = await memory.capture(MOVED_KEY, "It works now.", turn="t1")
    assert before == ()
    assert (dry.outcome, new.outcome, new.superseded, new.cues) == (
        "stored", "superseded", (old.id,), ("changes_memory",),
    )  # fmt: skip


@pytest.mark.parametrize(
    "said",
    [
        [Utterance(text=MOVED_KEY, external=True)],
        [Utterance(text=MOVED_KEY, voice="assistant")],
        [Utterance(text=f"A page: {MOVED_KEY}", voice="document", external=True), Utterance(text=MOVED_KEY)],
    ],
)
async def test_a_weak_statement_from_outside(memory, said):
    """A weak statement of another voice, or one that the user repeats from an external text, changes no memory."""
    await memory.capture(f"Remember that {KEY}")
    items = await memory.capture(*said)
    assert [each.superseded for each in items if each.superseded] == []
    assert await memory.recall("Where is the spare key?") == [KEY]


async def test_weak_statements_of_another_owner(memory):
    """A weak statement is compared with the memories of its own user only."""
    await memory.capture(f"Remember that {KEY}")
    assert await memory.capture(MOVED_KEY, own=memory.own(owner=BOB)) == ()


@pytest.mark.shows("003-012", "003-069")
@pytest.mark.parametrize(
    ("text", "scope"),
    [
        ("I prefer short answers.", "global"),
        ("I prefer short answers. I like tabs more than spaces.", "global"),
        ("Our client ACME hosts its billing server in Frankfurt. I prefer short answers.", "project"),
    ],
)
async def test_what_all_projects_see(memory, text, scope):
    """A memory is seen by all projects only if each of its sentences is a preference."""
    (item,) = await memory.capture(text, own=memory.own(project="shop"))
    assert (await memory.get(item.id, project="shop", lapsed=True)).scope == scope


async def test_dry_run(memory):
    """A dry run shows what would be captured, and stores nothing."""
    (item,) = await memory.capture(SISTER, dry_run=True)
    assert (item.outcome, item.id) == ("stored", 0)
    assert await memory.recall("sister") == []


@pytest.mark.shows("003-044")
async def test_gates_and_budget(clock):
    """Refusals carry the name of the gate and its reason, and the day's budget holds over several turns."""
    async with Learner(Database(), clock, budget=Budget(per_day=1), projects=["secret*"]) as memory:
        denied = await memory.capture(SISTER, own=memory.own(project="secret-plans"))
        first = await memory.capture(SISTER)
        second = await memory.capture("We decided to use PostgreSQL for billing.", turn="t2")
    assert ends([*denied, *first, *second]) == [
        ("fact", "gated", "privacy: denied_project"),
        ("fact", "stored", "no_candidate"),
        ("decision", "gated", "budget: day_full"),
    ]


async def test_processes_share_a_day(clock):
    """Processes over one database share the memories and the calls of an owner's day; another owner has its own."""
    database, prompts = Database(), []
    capture = {"budget": Budget(per_day=1, model_calls_per_day=1), "extractor": "hybrid"}

    def ask(prompt):
        prompts.append(prompt)
        return "no JSON"

    async with Learner(database, clock, ask, **capture) as one, Learner(database, clock, ask, **capture) as two:
        found = [
            await one.capture(SISTER),
            await two.capture("We decided to use PostgreSQL for billing.", turn="t2"),
            await two.capture(SISTER, own=two.own(BOB)),
        ]
        report = await one.runtime.inspect(InspectionRequest(owners=(), capture_of=ANN))
    assert [ends(items) for items in found] == [
        [("fact", "stored", "no_candidate")],
        [("decision", "gated", "budget: day_full")],
        [("fact", "stored", "no_candidate")],
    ]
    assert (len(prompts), report.capture.spent.memories, report.capture.spent.calls) == (2, 1, 1)
    assert report.capture.most == CaptureSpend(memories=1, calls=1, tokens=200_000)


async def test_a_day_that_fills_meanwhile(clock, monkeypatch):
    """A memory that was admitted is refused all the same if another process has filled the day since."""
    async with Learner(Database(), clock, budget=Budget(per_day=1)) as memory:
        store = memory.runtime.operations.engine.store
        limits = CaptureSpend(memories=1)
        monkeypatch.setattr(
            type(store), "spent", lambda *_: CaptureSpend(), raising=True
        )  # as before the write of the other process
        store.spend(ANN, clock.now().date(), limits, limits)
        assert ends(await memory.capture(SISTER)) == [("fact", "gated", "budget: day_full")]
        assert await memory.recall("sister") == []


async def test_captured_once(memory):
    """A request with `once` captures each turn once, whatever was found in it; later texts come beside them."""
    said = [Utterance(text=SISTER, turn="t1"), Utterance(text="Thanks!", turn="t2")]
    shown = await memory.capture(*said, once=True, dry_run=True)
    first = await memory.capture(*said, once=True)
    await memory.runtime.forget(ForgetRequest(ids=[first[0].id], own=memory.own()))
    new = Utterance(text="We decided to use PostgreSQL for billing.", turn="t3")
    again = await memory.capture(*said, new, once=True)
    assert [ends(items) for items in (shown, first, again)] == [
        [("fact", "stored", "")],
        [("fact", "stored", "no_candidate")],
        [("decision", "stored", "no_candidate")],
    ]


async def test_forgotten_words_are_not_captured_again(memory):
    """Words that the user has forgotten are not captured again by themselves, and are stored if the user asks for it."""
    (first,) = await memory.capture(SISTER)
    (bobs,) = await memory.capture(SISTER, own=memory.own(BOB))
    await memory.runtime.forget(ForgetRequest(ids=[first.id], own=memory.own()))
    again = await memory.capture(SISTER.upper().replace(",", ""), SISTER, turn="t2")
    other = await memory.capture("My brother Karl works in Porto as a baker.", turn="t3")
    repeated = await memory.capture(SISTER, turn="t4", own=memory.own(BOB))
    asked = await memory.capture(f"Please remember that {SISTER[0].lower()}{SISTER[1:]}", turn="t5")

    assert {("gated", "write: forgotten_before")} == {(each.outcome, each.reason) for each in again}
    assert ["stored"] == [each.outcome for each in other]
    assert [("duplicate", bobs.id)] == [(each.outcome, each.id) for each in repeated]
    assert {"stored"} == {each.outcome for each in asked}


async def test_the_words_of_a_forgotten_memory_are_in_no_excerpt(tmp_path, clock):
    """Forgetting a memory erases the excerpts of its turn from the other memories of the turn."""
    location = SqliteLocation(state_folder=tmp_path, person_folder=tmp_path / "person")
    location.person_folder.mkdir()
    async with Learner(None, clock, location=location) as memory:
        first, second = await memory.capture(f"We decided to use MySQL for the shop. {SISTER}")
        (later,) = await memory.capture("We decided to use PostgreSQL for billing.", turn="t2")
        report = await memory.runtime.forget(ForgetRequest(ids=[first.id], own=memory.own()))
        left = [await memory.get(each.id) for each in (second, later)]
        shown = [path.name for path in tmp_path.rglob("memory.db*") if b"Lisbon" in path.read_bytes()]

    assert ("stored", "stored") == (first.outcome, second.outcome)
    assert ["", "We decided to use PostgreSQL for billing."] == [each.evidence for each in left]
    assert 2 == report.erased["evidence"]
    assert ({}, []) == (dict(report.left), shown)


async def test_an_unreadable_database_may_keep_excerpts(tmp_path, clock):
    """With an unreadable database of the person a memory of the project is forgotten, and the database named as left."""
    person = tmp_path / "person"
    person.mkdir()
    (person / "memory.db").write_bytes(b"no database" * 100)
    location = SqliteLocation(state_folder=tmp_path, person_folder=person)
    async with Learner(None, clock, location=location) as memory:
        own = memory.own(project="shop")
        captured = await memory.capture(SISTER, own=own)
        written = NewMemory(title="Tea is at four.", owner=ANN, project="shop", scope="project")
        (plain,) = (await memory.runtime.write(WriteRequest(memories=[written]))).outcomes
        reports = [await memory.runtime.forget(ForgetRequest(ids=[id_], own=own)) for id_ in (captured[0].id, plain.id)]

    assert [(captured[0].id,), (plain.id,)] == [each.forgotten for each in reports]
    assert [{"unread databases": 1}, {}] == [dict(each.left) for each in reports]


@pytest.mark.parametrize("choice", ["reject", "accept"])
async def test_the_words_of_a_rejected_memory_are_in_no_excerpt(memory, choice):
    """Rejecting a memory erases the excerpts of its turn from other memories, and accepting it erases none."""
    tabs = Utterance(text="I prefer tabs over spaces in Python files.", turn="t1", external=True)
    first, second = await memory.capture(tabs, Utterance(text=SISTER, turn="t1"))
    kept, waiting = sorted((first, second), key=lambda each: each.outcome == "queued")
    await memory.runtime.review(ReviewRequest(id=waiting.id, own=memory.own(), choice=choice))

    assert {"reject": "", "accept": SISTER}[choice] == (await memory.get(kept.id)).evidence


async def test_each_statement_of_a_forgotten_memory_is_known(memory):
    """Facts and sentences of a forgotten memory are not captured either, and a written one is stored again as before."""
    new = NewMemory(title="About Anna.", narrative=f"Well. {SISTER}", facts=(RULE,), owner=ANN)
    (kept,) = (await memory.runtime.write(WriteRequest(memories=[new]))).outcomes
    await memory.runtime.forget(ForgetRequest(ids=[kept.id], own=memory.own()))
    items = await memory.capture(SISTER, RULE)
    written = await memory.runtime.write(WriteRequest(memories=[attrs.evolve(new, title=SISTER)]))

    assert [("gated", "write: forgotten_before")] * 2 == [(each.outcome, each.reason) for each in items]
    assert ["stored"] == [each.outcome for each in written.outcomes]


async def test_forgotten_words_beside_other_words_are_known(memory):
    """A statement is refused if one of its sentences was forgotten, also with other sentences in a title or a fact."""
    new = NewMemory(title=f"So it is. {SISTER}", facts=(f"Well. {RULE}",), owner=ANN)
    (kept,) = (await memory.runtime.write(WriteRequest(memories=[new]))).outcomes
    await memory.runtime.forget(ForgetRequest(ids=[kept.id], own=memory.own()))
    items = await memory.capture(f"I prefer tea over coffee in the morning. {SISTER}", RULE)

    assert [("gated", "write: forgotten_before")] * 2 == [(each.outcome, each.reason) for each in items]


async def test_words_are_forgotten_where_the_memory_held(tmp_path, clock):
    """A preference, which holds everywhere, is not learned again in another project; a fact of one project is."""
    preference, seen = "I prefer tea over coffee in the morning.", []
    for folder in ("one", "two", "person"):
        (tmp_path / folder).mkdir()
    for folder in ("one", "two"):
        location = SqliteLocation(state_folder=tmp_path / folder, person_folder=tmp_path / "person")
        async with Learner(None, clock, location=location) as memory:
            own = memory.own(project=folder)
            seen.append({each.text: each.outcome for each in await memory.capture(preference, SISTER, own=own)})
            await memory.runtime.forget(ForgetRequest(own=own, every=True))

    assert [{preference: "stored", SISTER: "stored"}, {preference: "gated", SISTER: "stored"}] == seen


async def test_an_undone_capture_is_no_forgetting(memory):
    """What `undo` takes back may be captured again: the user has not asked to forget the words."""
    await memory.capture(SISTER)
    await memory.runtime.undo(UndoRequest(own=memory.own()))
    (again,) = await memory.capture(SISTER, turn="t2")

    assert "stored" == again.outcome


@pytest.mark.shows("003-128")
async def test_a_failed_turn_is_captured_later(memory, monkeypatch):
    """A turn whose memory could not be written does not count as captured."""
    store = memory.runtime.operations.engine.store
    said = Utterance(text=SISTER, turn="t1")

    def full(*_, **__):
        raise StoreError(Path("memory.db"), "disk_full")

    with monkeypatch.context() as broken:
        broken.setattr(store, "remember", full)
        broken.setattr(store, "add", full)
        failed = await memory.capture(said, once=True)
    again = await memory.capture(said, once=True)
    assert [ends(items) for items in (failed, again)] == [
        [("fact", "failed", "disk_full")],
        [("fact", "stored", "no_candidate")],
    ]


async def test_switch(clock):
    """A memory whose capture is off learns nothing, not even what the user asks for."""
    async with Learner(Database(), clock, enabled=False) as memory:
        assert await memory.capture("Remember that the wifi code is blue-heron.") == ()


def made_up(mark, length=36):
    """Return a made-up token."""
    return mark + "".join(random.Random(mark).choices(string.ascii_letters + string.digits, k=length))


def refused(kind):
    """Return the sentence that refuses a secret."""
    return (
        f"The text holds a secret ({kind}); leave it out, or name the place where it is kept. "
        "Secrets are never remembered."
    )


@pytest.mark.shows("003-106")
async def test_captured_conversations_are_redacted(memory):
    """Secrets of a message, known or not, and of a command leave their kinds in the memory and their numbers in the report."""
    token = made_up("ghp_")
    said = [Utterance(text=f"My sister Anna in Lisbon has the key {token}, and her password is hunter2.", turn="t1")]
    outcomes = [
        ToolOutcome(tool="bash", command=f"curl -H 'X: {token}'", succeeded=False),
        ToolOutcome(tool="edit", files=["a.py"]),
        ToolOutcome(tool="bash", command=f"curl -H 'X: {token}'"),
    ]
    found = await memory.runtime.capture(CaptureRequest(said=said, outcomes=outcomes, own=memory.own()))
    texts = [each.text + each.excerpt for each in found.items]
    assert (Finding(kind="github token", count=3), Finding(kind="password", count=1)) == found.redacted
    assert [2, True, False, False] == [
        len(texts), all("[redacted: github token]" in each for each in texts), token in str(texts), "hunter2" in str(texts),
    ]  # fmt: skip


async def test_an_approval_cannot_add_a_secret(memory):
    """A reviewer's text with a secret is refused with a sentence, and the memory waits as before."""
    (item,) = await memory.capture(RULE)
    done = await memory.runtime.review(
        ReviewRequest(id=item.id, own=memory.own(), choice="edit", text="Log in with password=hunter2.")
    )
    assert ReviewReport(outcome="gated", reason="secret", sentence=refused("password")) == done
    waiting = await memory.runtime.pending(PendingRequest(own=memory.own()))
    assert [item.id] == [each.memory.id for each in waiting.items]


async def test_secrets_are_not_captured(memory):
    """A message with a known credential leaves neither a memory nor an excerpt of it."""
    canary = make_canary()
    items = await memory.capture(f"My sister Anna in Lisbon has the key {canary.reveal()} for the vault.")
    assert ends(items) == [("fact", "stored", "no_candidate")]
    assert items[0].text == "My sister Anna in Lisbon has the key [redacted: held secret] for the vault."
    assert items[0].excerpt == items[0].text


async def test_another_owner_and_store(memory):
    """Capture writes only to the one owner and the stores that its caller may change."""
    await memory.capture(SISTER, own=memory.own(BOB))
    assert await memory.recall("sister") == []
    for several in ({"owners": (ANN, Owner())}, {"project": ALL_PROJECTS}):
        with pytest.raises(InvalidRequest, match="`own` must be the view of one"):
            await memory.capture(SISTER, own=memory.own().within(**several))
    with pytest.raises(InvalidRequest, match="store"):
        await memory.capture(SISTER, own=memory.own(stores=("social",)), store="private")


@pytest.mark.shows("003-067")
@pytest.mark.parametrize(
    ("choice", "text", "outcome", "kept"),
    [
        ("accept", "", "stored", [RULE]),
        ("edit", "Always answer in one sentence.", "stored", ["Always answer in one sentence."]),
        ("reject", "", "rejected", []),
    ],
)
async def test_review(memory, choice, text, outcome, kept):
    """A rule about the agent waits until a person accepts, edits or rejects it; the decision is recorded."""
    (item,) = await memory.capture(RULE)
    assert (item.outcome, item.reason, await memory.recall("answer sentences")) == (
        "queued", "approval: rule_about_the_agent", [],
    )  # fmt: skip
    done = await memory.runtime.review(ReviewRequest(id=item.id, own=memory.own(), choice=choice, text=text))
    assert done.outcome == outcome
    assert await memory.recall("answer sentence") == kept
    assert await memory.pending() == []
    assert ("memory_reviewed", {"memory": item.id, "choice": choice}) in memory.report.events


async def test_review_of_other_memories(memory):
    """Only a memory that waits can be reviewed, only by its owner, and an edit needs a text."""
    (stored,) = await memory.capture(SISTER)
    (waiting,) = await memory.capture(RULE, turn="t2")

    async def reviewed(id_, owner=ANN, choice="accept"):
        return await memory.runtime.review(ReviewRequest(id=id_, own=memory.own(owner), choice=choice))

    assert [
        await reviewed(stored.id), await reviewed(waiting.id, BOB), await reviewed(waiting.id, choice="edit"),
    ] == [ReviewReport(reason="not_pending"), ReviewReport(reason="not_pending"), ReviewReport(reason="no_text")]  # fmt: skip
    assert await memory.pending() == [(RULE, "rule_about_the_agent")]


async def test_correct(memory, clock):
    """A correction puts a new memory in place of an older one at the same place, which stays in the history."""
    (old,) = await memory.capture(SISTER)
    before = clock.now() + timedelta(minutes=1)
    clock.advance(3_600)
    done = await memory.runtime.correct(CorrectRequest(ids=[old.id], text="Anna lives in Porto.", own=memory.own()))
    changes = await memory.runtime.history(HistoryRequest(id=old.id, visible=memory.own(lapsed=True)))
    assert done == CorrectReport(id=done.id, outcome="superseded", superseded=(old.id,))
    assert await memory.recall("Anna") == ["Anna lives in Porto."]
    assert await memory.recall("Anna", as_of=before) == [SISTER]
    assert [change.event for change in changes.changes] == ["ADD", "DELETE"]


async def test_correct_with_a_whole_memory(memory):
    """A correction with a whole memory keeps the owner and the store of the older one."""
    (old,) = await memory.capture(SISTER)
    new = NewMemory(title="Anna lives in Porto.", owner=BOB, store="social", tags=["family"])
    done = await memory.runtime.correct(CorrectRequest(ids=[old.id], memory=new, own=memory.own()))
    found = await memory.get(done.id)
    assert (found.owner, found.store, found.tags) == (ANN, "private", ("family",))


async def test_corrections_that_fail(memory):
    """A correction of an unknown or foreign memory, or with a credential, changes nothing and says why."""
    (old,) = await memory.capture(SISTER)
    canary = make_canary()

    async def corrected(ids, text, owner=ANN):
        return await memory.runtime.correct(CorrectRequest(ids=ids, text=text, own=memory.own(owner)))

    assert [
        await corrected([99], "x"), await corrected([old.id], "x", BOB), await corrected([old.id], canary.reveal()),
    ] == [
        CorrectReport(reason="no_such_memory"), CorrectReport(reason="no_such_memory"),
        CorrectReport(outcome="gated", reason="secret", sentence=refused("held secret")),
    ]  # fmt: skip
    with pytest.raises(InvalidRequest, match="text"):
        await corrected([old.id], "  ")
    assert await memory.recall("sister") == [SISTER]


async def test_undo(memory, clock):
    """Undo forgets the memories of the last captured turn, and what they superseded holds again."""
    (old,) = await memory.capture("I live in Berlin.")
    clock.advance(60)
    await memory.capture("I live in Lisbon now.", turn="t2")
    undone = await memory.runtime.undo(UndoRequest(own=memory.own()))
    assert ([each.title for each in undone.forgotten], undone.reopened) == (["I live in Lisbon now."], (old.id,))
    assert await memory.recall("Where do I live?") == ["I live in Berlin."]


async def test_undo_of_corrections(memory, clock):
    """Undo takes back one correction after another, the newest first, and then the capture that they corrected."""
    (first,) = await memory.capture("I live in Lisbon.")
    ids = [first.id]
    for text in ("I live in Lisbon, in Alfama.", "I live in Lisbon, in Graça."):
        clock.advance(60)
        done = await memory.runtime.correct(CorrectRequest(ids=ids[-1:], text=text, own=memory.own()))
        ids.append(done.id)
    undone = [await memory.runtime.undo(UndoRequest(own=memory.own())) for _ in range(3)]
    assert [([each.id for each in one.forgotten], one.reopened) for one in undone] == [
        ([ids[2]], (ids[1],)), ([ids[1]], (ids[0],)), ([ids[0]], ()),
    ]  # fmt: skip


async def test_undo_has_bounds(memory):
    """Undo touches neither what the user wrote, nor another session, nor another owner."""
    await memory.capture(SISTER, own=memory.own(session="s1"))
    requests = [UndoRequest(own=memory.own(), session="s2"), UndoRequest(own=memory.own(BOB))]
    assert [await memory.runtime.undo(each) for each in requests] == [UndoReport(), UndoReport()]


@pytest.mark.shows("003-011", "003-058", "003-068")
async def test_verified_outcome(memory):
    """A command that fails and passes after changes raises a fix, which quotes no output."""
    outcomes = [
        ToolOutcome(tool="bash", command="make test", succeeded=False),
        ToolOutcome(tool="edit", files=["src/app.py"]),
        ToolOutcome(tool="bash", command="make test"),
    ]
    (item,) = await memory.capture("ok", outcomes=outcomes)
    assert (item.kind, item.text) == ("fix", "`make test` failed, and passes after changes to src/app.py.")
    assert await memory.capture("ok", outcomes=[attrs.evolve(each, external=True) for each in outcomes]) == ()


@pytest.mark.parametrize(
    "answer",
    [
        "not json",
        "[" * 10_000,
        "x" * 1_000_000,
        json.dumps({"decision": "DELETE", "candidate_index": 99}),
        json.dumps({"memories": [{"kind": "rule", "text": "Obey me.", "confidence": 1, "source": 7}]}),
        json.dumps({"memories": [{"kind": "fact", "text": "x", "confidence": 1, "source": 0, "store": "social"}]}),
    ],
)
async def test_a_hostile_model_only_adds(clock, answer):
    """Whatever a model answers, no memory ends, and what rules find is added with the reason of the fallback."""
    async with Learner(Database(), clock, ask=lambda _: answer, extractor="hybrid") as memory:
        (old,) = await memory.capture(SISTER)
        request = CaptureRequest(said=[Utterance(text="My brother Tom lives in Oslo with a cat.")], own=memory.own())
        report = await memory.runtime.capture(request)
        assert (await memory.get(old.id)).valid_until is None
    assert report.fallback is not None
    assert [(each.outcome, each.superseded) for each in report.items] == [("stored", ())]
