"""The commands under `/memory local`."""

import contextlib
from datetime import timedelta

import apsw
import pytest

from beaver_hooks_local import commands
from beaver_hooks_local.errors import CommandRefused
from beaver_hooks_local.visibility import Visibility
from beaver_hostspecs import CommandContext
from beaver_hostspecs.testing import RecordingReport, make_turn
from beaver_memory.records import NewMemory, Owner
from beaver_memory.views import Reach

STABLE = "Billing is deployed from the branch stable."


@pytest.fixture
def run(memory):
    """Runs a command as the host would."""

    async def serve(work, *, wrote=False):
        return work(memory)

    table = {command.name: command for command in commands.offered(serve)}

    async def ran(name, *words, report=None, **context):
        given = CommandContext(**{"session": "session-1", "user": "ann", "trust": "full", **context})
        return await table[name].run(words, given, report or RecordingReport())

    return ran


def add(memory, title=STABLE, **fields):
    given = {"owner": Owner(user="ann"), "created_at": memory.clock.now() - timedelta(days=1), **fields}
    return memory.operations.engine.add(NewMemory(title=title, **given))[0]


def recall(memory, prompt="From which branch is billing deployed?"):
    return memory.recaller.recall(make_turn(prompt=prompt, user="ann", trust="full"), RecordingReport())


async def test_list(memory, run):
    """`list` shows the memories active in the session first, then the recent ones."""
    assert "There are no memories yet." == await run("list")
    one, two = add(memory, type="decision"), add(memory, "Likes tea.")
    recall(memory)
    lines = (await run("list")).split("\n")
    day = f"{memory.clock.now() - timedelta(days=1):%Y-%m-%d}"

    assert [
        "Active in this session:",
        f"[{one}] {day} private decision: {STABLE}",
        "Recent:",
        f"[{two}] {day} private discovery: Likes tea.",
        f"[{one}] {day} private decision: {STABLE}",
    ] == lines


@pytest.mark.shows("003-019")
async def test_overview(memory, run):
    """`overview` shows at most five active and five recent memories."""
    ids = [add(memory, f"Billing fact {number}.") for number in range(7)]
    recall(memory, "What is known of billing?")
    lines = (await run("overview")).split("\n")
    last = memory.recaller.last(
        Visibility.of_command(CommandContext(session="session-1", user="ann", trust="full"), Reach())
    )

    assert ["Active in this session:", "Recent:"] == [line for line in lines if not line.startswith("[")]
    assert [*last.given[:5], *ids[:1:-1]] == [int(line[1 : line.index("]")]) for line in lines if line.startswith("[")]


async def test_active_and_recent(memory, run):
    """`active` and `recent` each show one of the two lists, and `active` says when this process recalled nothing."""
    assert "There are no memories yet." == await run("recent")
    one, two = add(memory), add(memory, "Likes tea.")
    assert "This process has recalled nothing in this session." in await run("active")
    recall(memory)

    assert [f"[{one}]"] == [line.split()[0] for line in (await run("active")).splitlines()]
    assert [f"[{two}]", f"[{one}]"] == [line.split()[0] for line in (await run("recent")).splitlines()]


@pytest.mark.shows("003-020", "003-091", "003-127")
async def test_pin_and_unpin(memory, run):
    """`pin` and `unpin` answer with the memory, show in `list`, and report their outcome."""
    report, id_ = RecordingReport(), add(memory)

    assert f"{id_} is pinned: {STABLE}" == await run("pin", str(id_), report=report)
    assert " pinned: " in await run("list")
    assert f"{id_} is no longer pinned: {STABLE}" == await run("unpin", str(id_), report=report)
    assert " pinned: " not in await run("list")
    assert [True, False] == [facts["pinned"] for _, _, facts in report.outcomes]


@pytest.mark.shows("003-021")
async def test_forget_shows_first(memory, run):
    """`forget` without the word `yes` forgets nothing."""
    id_ = add(memory)

    assert f"Write `forget {id_} yes` to erase it." in await run("forget", str(id_))
    assert STABLE in await run("list")


@pytest.mark.shows("003-013", "003-021", "003-108", "003-127")
async def test_forget(memory, run, tmp_path):
    """`forget ID yes` erases the memory from every file and reports an event."""
    report, id_ = RecordingReport(), add(memory)
    recall(memory)
    answer = await run("forget", str(id_), "yes", report=report)
    memory.operations.engine.close()

    assert f"{id_} is forgotten" in answer
    assert [("memory_forgotten", {"memory": id_, "store": "private"})] == [
        (name, dict(facts)) for name, facts in report.events
    ]
    assert [] == [path for path in tmp_path.rglob("*") if path.is_file() and STABLE.encode() in path.read_bytes()]


@pytest.mark.shows("003-021", "003-127")
async def test_what_has_lapsed_can_be_forgotten(memory, run):
    """`list` leaves out expired and superseded memories and `pin` refuses them; `forget` takes their ids."""
    ago = memory.clock.now() - timedelta(hours=1)
    ids = [add(memory, expires_at=ago), add(memory, "Another.", valid_until=ago)]

    assert "There are no memories yet." == await run("list")
    for id_ in map(str, ids):
        with pytest.raises(CommandRefused):
            await run("pin", id_)
        assert f"[{id_}]" in await run("forget", id_)
        assert f"{id_} is forgotten" in await run("forget", id_, "yes")
    assert 0 == memory.operations.engine.store.count(Owner(user="ann"))


async def test_what_was_forgotten_is_not_explained(memory, run):
    """`why` leaves out a memory that was forgotten since."""
    id_ = add(memory)
    recall(memory)
    await run("forget", str(id_), "yes")

    assert "The recall gate decided `recall`: session_start.\nNo memory was found." == await run("why")


@pytest.mark.shows("003-013")
async def test_why(memory, run):
    """`why` says what the gate decided, and each signal's share in each score."""
    assert "This process has recalled nothing in this session" in await run("why")
    add(memory, type="decision")
    recall(memory)
    gate, row, shares = (await run("why")).split("\n")

    assert ("The recall gate decided `recall`: session_start.", True) == (gate, STABLE in row)
    assert shares.strip().startswith("given; lexical 0.")
    assert "has recalled nothing" in await run("why", session="other")


async def test_why_after_a_prompt_that_was_given_nothing(memory, run):
    """`why` after a skipped prompt names the reason, and then explains the recall before it if there was one."""
    add(memory)
    recall(memory, "thanks")
    alone = await run("why")
    recall(memory)
    recall(memory, "ok")
    later = (await run("why")).split("\n")

    assert "The recall gate decided `skip`: acknowledgement." == alone
    assert (
        "Nothing was recalled for the last prompt: acknowledgement. For the prompt before it:",
        "The recall gate decided `recall`: session_start.",
        True,
    ) == (*later[:2], STABLE in later[2])


async def test_why_something_was_not_given(memory, run):
    """`why` says that a memory was not given because the conversation already holds it."""
    add(memory)
    recall(memory, f"{STABLE} Is that so?")

    assert "not given, because the conversation already says it; " in await run("why")


async def test_why_heeds_trust(memory, run):
    """`why` leaves out a memory that the trust of the caller does not show."""
    add(memory)
    recall(memory)

    assert "No memory was found." in await run("why", trust="inner")


async def test_search(memory, run):
    """`search` shows the memories that fit, and says when there are none."""
    add(memory)

    assert STABLE in await run("search", "billing", "branch")
    assert "No memory was found." == await run("search", "zebra")


async def test_status(memory, run):
    """`status` counts the memories that the user sees, and names the trouble."""
    add(memory)
    add(memory, "The office closes at six.", owner=Owner())
    add(memory, "Of bob.", owner=Owner(user="bob"), type="confession")
    well = await run("status")
    memory.troubles.began("embedding", "timeout", RecordingReport())

    assert ("memories: 2\ntrouble: none", "memories: 2\ntrouble: embedding_timeout") == (well, await run("status"))


@pytest.mark.parametrize("trust", ["inner", "familiar", "public"])
async def test_status_heeds_trust(memory, run, trust):
    """`status` gives no counts to a caller whose trust does not show all stores."""
    add(memory)

    assert "trouble: none" == await run("status", trust=trust)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("list", ["x"]),
        ("overview", ["x"]),
        ("active", ["x"]),
        ("recent", ["x"]),
        ("why", ["x"]),
        ("status", ["x"]),
        ("search", []),
        ("search", [" "]),
        ("pin", []),
        ("pin", ["1", "2"]),
        ("pin", ["x"]),
        ("pin", ["-1"]),
        ("pin", ["²"]),
        ("pin", ["9" * 30]),
        ("unpin", ["0"]),
        ("forget", []),
        ("forget", ["1", "no"]),
        ("forget", ["1", "yes", "yes"]),
        ("forget", ["all", "yes"]),
    ],
)
async def test_refused(memory, run, name, words):
    """Words that mean nothing are refused with what to say, and nothing is done."""
    add(memory)
    with pytest.raises(CommandRefused):
        await run(name, *words)

    assert 1 == memory.operations.engine.store.count(Owner(user="ann"))


@pytest.mark.parametrize("context", [{"user": "bob"}, {"user": None}, {"trust": "inner"}, {"trust": "public"}])
async def test_only_what_is_ones_own(memory, run, context):
    """A memory of another user, or one that the trust hides, can be neither pinned nor forgotten."""
    id_ = add(memory)
    for name, words in (("pin", ()), ("forget", ()), ("forget", ("yes",))):
        with pytest.raises(CommandRefused, match="There is no memory"):
            await run(name, str(id_), *words, **context)

    assert STABLE in await run("list")


async def test_a_damaged_memory(memory, run):
    """A command for a damaged memory of the user names it and the remedy, at full trust alone."""
    id_ = add(memory, store="shared")
    with contextlib.closing(apsw.Connection(str(memory.operations.engine.store.path))) as connection:
        connection.execute("UPDATE observations SET title = 'changed'")
    for name in ("pin", "forget"):
        with pytest.raises(CommandRefused, match=f"Memory {id_} is damaged and not shown: .*forget --damaged {id_}"):
            await run(name, str(id_))
    with pytest.raises(CommandRefused, match="There is no memory"):
        await run("pin", str(id_), trust="inner")


async def test_what_belongs_to_everybody_is_seen_and_not_changed(memory, run):
    """Every user of a tenant sees a memory without a user, and only a caller without a user forgets it."""
    id_ = add(memory, owner=Owner())

    assert STABLE in await run("list")
    with pytest.raises(CommandRefused):
        await run("forget", str(id_), "yes")
    assert f"{id_} is forgotten" in await run("forget", str(id_), "yes", user=None)


async def test_public(memory, run):
    """`list` and `search` tell a public caller that its trust is too low."""
    add(memory)

    assert ["The trust of this user is too low to see memories."] * 2 == [
        await run("list", trust="public"),
        await run("search", "billing", trust="public"),
    ]


async def test_search_for_a_phrase(run, memory):
    """`search` finds quoted words in their order, and a star stands for the end of a word."""
    add(memory, "A blue whale dives.")
    add(memory, "The whale is blue.")

    assert ["A blue whale dives.", "The whale is blue."] == [
        (await run("search", *words.split())).rpartition(": ")[2] for words in ('"blue whale"', 'whal* "is blue"')
    ]


@pytest.mark.parametrize("words", [("--all", "yes"), ("all",), ("--all",)])
async def test_forgetting_all_at_once(memory, run, words):
    """`forget --all` in a conversation names the command of the terminal, and forgets nothing."""
    add(memory)

    with pytest.raises(CommandRefused, match="All of them: `beaver memory forget --all` in a terminal"):
        await run("forget", *words)
    assert 1 == memory.operations.engine.store.count(Owner(user="ann"))
