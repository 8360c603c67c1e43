"""`memory_write`: every call ends in a named outcome, and forbidden content is not written."""

import json
from datetime import timedelta

import pytest

from beaver_hooks_local.tools.definitions import offered
from beaver_hooks_local.tools.schemas import SCHEMAS, checked
from beaver_hooks_local.tools.write_tool import write
from beaver_hooks_local.visibility import Visibility
from beaver_hostspecs import OutcomeKind, Scope
from beaver_hostspecs.testing import RecordingReport, make_canary, make_turn
from beaver_memory.records import Owner, Store
from beaver_memory.runtime.capture_records import UndoRequest
from beaver_memory.views import Reach


def turn(**fields):
    return make_turn(**{"user": "ann", "trust": "full", **fields})


def say(memory, report=None, at=None, **arguments):
    return write(memory, checked(arguments, SCHEMAS["memory_write"]), at or turn(), report or RecordingReport())


def stored(memory, id_, at=None):
    (found,) = memory.operations.engine.get(
        [id_], Visibility.of_turn(at or turn(), Reach()).filters(memory.clock.now())
    )
    return found


@pytest.mark.shows("003-010", "003-049", "003-075", "003-076", "003-078")
def test_stored(memory):
    """`memory_write` stores every field for the turn's user, session and project, and reports the outcome."""
    report = RecordingReport()
    at = turn(scope=Scope(tenant="t", project="p", agent="a"), session="s1")
    answer = say(
        memory,
        report,
        at,
        title="Billing is deployed from stable.",
        type="decision",
        narrative="Because main moves.",
        facts=["stable is protected"],
        tags=["deploy"],
        related_files=["ci.yml"],
        related_people=["Bob"],
        store="shared",
    )
    kept = stored(memory, answer["id"], at)

    assert {"outcome": "stored", "id": answer["id"], "store": "shared"} == answer
    assert (Owner(tenant="t", user="ann"), Store.SHARED, "decision", "project", "p", "s1", "a", "agent") == (
        kept.owner,
        kept.store,
        kept.type,
        kept.scope,
        kept.project,
        kept.session,
        kept.agent,
        kept.source,
    )
    assert [("local", OutcomeKind.STORED)] == [(plane, kind) for plane, kind, _ in report.outcomes]
    assert "stable" not in repr(report.outcomes)


@pytest.mark.shows("003-087")
def test_a_model_is_no_user(memory):
    """A model that names the user or capture as the source of a memory is its source itself; a document may be one."""
    given = ("user", " User", "auto_capture", "handbook.pdf")
    answers = [say(memory, title=f"Tea {number}.", source=source) for number, source in enumerate(given)]

    assert ["agent", "agent", "agent", "handbook.pdf"] == [stored(memory, each["id"]).source for each in answers]


def test_preferences_hold_everywhere(memory):
    """A preference holds in every project, and so does a memory written outside of any project."""
    at = turn(scope=Scope(project="p"))

    assert ["global", "global"] == [
        stored(memory, say(memory, at=at, title="Likes tea.", type="preference")["id"], at).scope,
        stored(memory, say(memory, title="Rome is warm.")["id"]).scope,
    ]


@pytest.mark.shows("002-007", "002-067", "003-039", "003-049", "003-050", "003-072")
def test_duplicate(memory):
    """Writing the same title and facts again counts a mention and makes no second memory."""
    report = RecordingReport()
    first = say(memory, title="Likes tea.", facts=["green"])
    again = say(memory, report, title="Likes tea.", facts=["green"], tags=["drinks"])

    assert {"outcome": "duplicate", "id": first["id"], "mentions": 2} == again
    assert [OutcomeKind.DUPLICATE] == [kind for _, kind, _ in report.outcomes]
    assert (1, 2) == (
        memory.operations.engine.store.count(Owner(user="ann")),
        stored(memory, first["id"]).mention_count,
    )


def test_the_same_title_with_another_narrative_is_another_memory(memory):
    """Two memories with the same title and different narratives are both kept."""
    answers = [say(memory, title="How to deploy", narrative=said) for said in ("Use blue.", "Use green.")]

    assert ["Use blue.", "Use green."] == [stored(memory, answer["id"]).narrative for answer in answers]


def test_the_same_in_another_project_is_seen_there(memory):
    """The same text in two projects is one memory for each project, and a preference is one for both."""
    projects = [turn(scope=Scope(project=name)) for name in ("p", "q")]
    rules = [say(memory, at=at, title="Use tabs here.", type="rule")["outcome"] for at in projects * 2]
    likes = [say(memory, at=at, title="Likes tea.", type="preference")["outcome"] for at in projects]
    seen = [
        [
            (each.project, each.mention_count)
            for each in memory.operations.engine.store.recent(which, limit=9)
            if each.type == "rule"
        ]
        for which in (Visibility.of_turn(at, Reach()).filters(memory.clock.now()) for at in projects)
    ]

    assert ["stored", "stored", "duplicate", "duplicate"] == rules
    assert ["stored", "duplicate"] == likes
    assert [[("p", 2)], [("q", 2)]] == seen


def test_what_is_said_again_stays_longer(memory):
    """Writing an expiring memory again without an end removes its end."""
    soon = (memory.clock.now() + timedelta(hours=1)).isoformat()
    first = say(memory, title="The code is 4711.", expires=soon)
    say(memory, title="The code is 4711.")

    assert stored(memory, first["id"]).expires_at is None


def test_two_stores_by_turns(memory):
    """The same text in two stores is one memory in each, and a repeat is a duplicate."""
    answers = [say(memory, title="Likes tea.", store=store) for store in ("private", "social") * 2]

    assert ["stored", "stored", "duplicate", "duplicate"] == [answer["outcome"] for answer in answers]


def test_the_same_in_another_store_is_another_memory(memory):
    """A social memory with the text of a private one is stored beside it, and leaves the private one unchanged."""
    private = say(memory, title="Likes tea.")
    social = say(memory, at=turn(trust="familiar"), title="Likes tea.")

    assert ("stored", "social", 1) == (social["outcome"], social["store"], stored(memory, private["id"]).mention_count)


@pytest.mark.shows("002-009", "003-045", "003-049")
@pytest.mark.parametrize(
    ("trust", "store", "expected"),
    [
        ("full", None, "private"),
        ("full", "social", "social"),
        ("inner", None, "shared"),
        ("inner", "private", None),
        ("familiar", None, "social"),
        ("familiar", "shared", None),
        ("public", None, None),
        ("public", "social", None),
    ],
)
def test_trust(memory, trust, store, expected):
    """A speaker writes to visible stores only, by default to the innermost, and a public speaker writes nothing."""
    report = RecordingReport()
    answer = say(memory, report, turn(trust=trust), title="Likes tea.", **({"store": store} if store else {}))
    (told,) = [(kind, facts.get("reason")) for _, kind, facts in report.outcomes]

    assert expected == answer.get("store")
    assert told == ((OutcomeKind.STORED, None) if expected else (OutcomeKind.REJECTED, "trust"))
    assert int(bool(expected)) == memory.operations.engine.store.count(Owner(user="ann"))


@pytest.mark.shows("003-045", "003-106")
@pytest.mark.parametrize("field", ["title", "narrative", "facts", "tags", "related_people", "related_files", "source"])
def test_known_secrets_are_refused(memory, field, tmp_path):
    """A memory with a known credential, in any encoding, is refused whole and written nowhere."""
    canary, report = make_canary(), RecordingReport()
    for text in (f"The key is {canary.reveal()}", json.dumps(canary.reveal())):
        given = text[:200] if field not in ("facts", "tags", "related_people", "related_files") else [text[:200]]
        answer = say(memory, report, **{"title": "A key", field: given})
        assert "rejected" == answer["outcome"]
        canary.assert_clean(str(answer), repr(report.outcomes))

    assert ["secret", "secret"] == [facts["reason"] for _, _, facts in report.outcomes]
    assert 0 == memory.operations.engine.store.count(Owner(user="ann"))
    canary.assert_clean(*(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()))


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"title": " \t"}, "invalid"),
        ({"title": "\0 \ud800"}, "invalid"),
        ({"title": "x", "expires": "1970-01-02"}, "expired"),
    ],
)
def test_rejected(memory, arguments, reason):
    """An empty title or an end in the past is rejected with a reason."""
    report = RecordingReport()
    answer = say(memory, report, **arguments)

    assert ("rejected", [reason]) == (answer["outcome"], [facts["reason"] for _, _, facts in report.outcomes])


def test_what_was_recalled_is_told(memory):
    """The outcome of a write says whether it repeats a text that the host had injected."""
    report = RecordingReport()
    say(memory, report, turn(was_injected=lambda text: "tea" in text), title="Likes tea.")

    assert [True] == [facts["echoes_reference"] for _, _, facts in report.outcomes]


async def test_wrong_arguments_are_told_to_the_model(memory):
    """Wrong arguments return an error to the model, and those of `memory_write` are reported as rejected."""
    tools = {tool.name: tool for tool in offered(None)}
    report = RecordingReport()

    assert {"error": "`title` is missing."} == await tools["memory_write"].run({}, turn(), report)
    assert {"error": "`ids` is missing."} == await tools["memory_get"].run({}, turn(), report)
    assert [("local", OutcomeKind.REJECTED, {"reason": "arguments"})] == [
        (plane, kind, dict(facts)) for plane, kind, facts in report.outcomes
    ]


def test_supersedes(memory):
    """`supersedes` puts a memory in place of an older one at its place, and reports both."""
    report = RecordingReport()
    old = say(memory, title="Billing is deployed from main.", store="shared")["id"]
    answer = say(memory, report, title="Billing is deployed from stable.", supersedes=old)
    assert {"outcome": "superseded", "id": answer["id"], "superseded": [old]} == answer
    assert [("local", OutcomeKind.SUPERSEDED, {"memory": answer["id"], "superseded": (old,)})] == report.outcomes
    assert Store.SHARED == stored(memory, answer["id"]).store
    ended = Visibility.of_turn(turn(), Reach()).own(memory.clock.now(), lapsed=True)
    assert memory.operations.engine.get([old], ended)[0].valid_until is not None


def test_a_contradiction(memory):
    """A memory that contradicts an older one supersedes it, and `undo` brings that one back; numbered titles stay."""
    report = RecordingReport()
    old, *_ = (say(memory, title=each)["id"] for each in ("I live in Lisbon.", "Ticket 12.", "Ticket 13."))
    answer = say(memory, report, title="I live in Porto.")
    own = Visibility.of_turn(turn(), Reach()).own(memory.clock.now())
    undone = memory.operations.undo(UndoRequest(own=own))

    assert {"outcome": "superseded", "id": answer["id"], "superseded": [old]} == answer
    assert [("local", OutcomeKind.SUPERSEDED, {"memory": answer["id"], "superseded": (old,)})] == report.outcomes
    assert (["I live in Porto."], (old,)) == ([each.title for each in undone.forgotten], undone.reopened)
    assert 3 == memory.operations.engine.store.count(Owner(user="ann"))


def test_a_text_that_recall_gave_ends_nothing(memory):
    """A memory that repeats a reference of its turn is stored beside the one that it contradicts."""
    say(memory, title="I live in Lisbon.")
    answer = say(memory, at=turn(was_injected=lambda text: "Porto" in text), title="I live in Porto.")
    assert "stored" == answer["outcome"]


def test_supersedes_what_the_user_may_not_change(memory):
    """A memory of another user, or an unknown one, cannot be superseded; nothing is written."""
    old = say(memory, title="Billing is deployed from main.")["id"]
    for at, id_ in ((turn(user="bob"), old), (turn(), 99)):
        answer = say(memory, at=at, title="Billing is deployed from stable.", supersedes=id_)
        assert ("rejected", True) == (answer["outcome"], "`supersedes`" in answer["reason"])
    assert 1 == memory.operations.engine.store.count(Owner(user="ann"))
