"""The plugin learns from the turns of a host: capture, correction, approval, and what must never be learned."""

import asyncio
import contextlib
import json

import apsw
import pytest

from beaver_hooks import Host
from beaver_hooks.audit.reader import TrailReader
from beaver_hooks.cli.state import recorded_turns
from beaver_hooks.cli.why import later_events
from beaver_hooks.config import Config
from beaver_hooks.config.model import HostSettings, Memory
from beaver_hooks_local import make_plugin, plugin
from beaver_hooks_local.capture.turn_capture import TurnCapture
from beaver_hooks_local.errors import CommandRefused
from beaver_hostspecs import Actors, CommandContext, Services
from beaver_memory.engine import MemoryEngine
from beaver_memory.records import Owner
from beaver_memory.views import ALL_PROJECTS

SISTER = "My sister Anna lives in Lisbon with her two kids."
QUESTION = "Where does my sister Anna live?"
RULE = "Always answer in short sentences without emojis."
ANN = CommandContext(session="s1", user="ann", trust="full")


@pytest.fixture
def make_host(tmp_path):
    """Makes hosts with the plugin and nothing else, on one state folder."""

    def make(services=None, **section):
        section = {"enabled": True, "embedding": {"provider": "none"}, **section}
        config = Config(host=HostSettings(), memory=Memory(sections={"local": section}))
        plugins = {"local": make_plugin()}
        return Host(plugins, config=config, state_folder=tmp_path / "state", services=services)

    return make


async def say(host, prompt, answer="Yes.", results=(), **fields):
    """Run a turn; return its handle."""
    async with host.turn(prompt, **{"session": "s1", "user": "ann", "trust": "full", **fields}) as turn:
        for number, result in enumerate(results):
            await turn.tool_result(call_id=f"c{number}", tool="bash", **result)
        await turn.commit(answer)
    await host.drain()
    return turn


async def account(host, turn):
    """Return the outcomes of a turn's receipt, without ids, and its decisions but for recall."""
    part = (await host.receipt(turn.id))["plugins"]["local"]
    outcomes = [(each["kind"], dict(each["facts"]).get("reason", "")) for each in part.get("outcomes", ())]
    decisions = [tuple(each[name] for name in ("gate", "verdict", "reason")) for each in part.get("decisions", ())]
    return outcomes, [each for each in decisions if each[0] != "recall"]


def shown(turn):
    return " ".join(message.text for message in turn.references)


async def command(host, name, *words, context=ANN):
    return await host.run_command("local", name, words, context)


@pytest.mark.shows("003-002", "003-018", "003-039", "003-127")
async def test_learned_in_one_host_and_recalled_in_another(make_host):
    """A fact that the user says in a chat of one turn is recalled by another host, without any tool call."""
    async with make_host() as host:
        await say(host, SISTER)
    async with make_host() as host:
        turn = await say(host, QUESTION)
        health = str(host.health()["local"])
    assert (SISTER in shown(turn), SISTER in turn.system_prompt(), health) == (True, False, "ok")


async def test_a_newcomers_short_statements(make_host):
    """Short statements that a user tries first are recalled by another host."""
    async with make_host() as host:
        await say(host, SISTER)
        await say(host, "I'm allergic to peanuts.")
        await say(host, "Anna has moved to Porto.")
    async with make_host() as host:
        found = [shown(await say(host, each)) for each in ("What am I allergic to?", "Where does Anna live now?")]
    assert ["peanuts" in found[0], "Porto" in found[1]] == [True, True]


@pytest.mark.shows("002-011", "002-080", "002-082", "003-005", "003-103", "003-132")
async def test_enough_messages(make_host):
    """Messages are captured together once four wait; receipts tell of the outcome, and which turns still wait."""
    async with make_host() as host:
        first = await say(host, SISTER)
        second = await say(host, "What is the time?")
        accounts = [await account(host, each) for each in (first, second)]
        facts = (await host.receipt(first.id))["plugins"]["local"]["outcomes"][0]["facts"]
    assert accounts == [([("deferred", "")], []), ([("stored", "")], [])]
    assert dict(facts) == {"messages": 2, "of": 4}


@pytest.mark.shows("002-078", "002-122", "002-125")
@pytest.mark.parametrize("id", [None, "ann@example.com"])
async def test_a_capture_after_its_turn_is_in_the_audit(make_host, tmp_path, id):  # noqa: A002 - the name of the field
    """A capture when the host closes, or in a later turn, is an event of the turn that `beaver why` finds."""
    folder, hidden = tmp_path / "state", {} if id is None else {"id": id}
    async with make_host() as host:
        turns = [await say(host, SISTER, **hidden), await say(host, "What is the time?")]
        turns.append(await say(host, "We decided to use PostgreSQL for billing."))
    told = [later_events(TrailReader(folder), folder, (recorded_turns(folder, each.id))[-1]) for each in turns]
    facts = [[{**each.facts, "turns": len(each.facts["turns"])} for each in events] for events in told]
    first = {"turns": 1, "outcomes": ["stored"], "memories": [1], "reasons": ["no_candidate"]}
    assert facts == [[first], [], [{**first, "memories": [2]}]]
    assert "ann@" not in str(told)


@pytest.mark.shows("002-122")
async def test_decisions_are_traced(make_host, tmp_path):
    """The trace has the outcome and the reason of each captured memory: of one that is new, and of one that ends it."""
    path = tmp_path / "trace.jsonl"
    async with make_host(traceFile=str(path), capture={"minTurnMessages": 1}) as host:
        await say(host, "Remember that my sister lives in Oslo.")
        await say(host, "Remember that my sister lives in Bergen now.")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    traced = [(each["outcome"], each["reason"]) for each in lines if each["event"] == "memory_capture"]
    assert [("stored", "no_candidate"), ("superseded", "single_value")] == traced


async def test_asked_for(make_host):
    """A statement that the user asks to remember is captured in its turn."""
    async with make_host() as host:
        turn = await say(host, "Remember that the wifi code is blue-heron.")
        assert (await account(host, turn))[0] == [("stored", "")]
        assert "the wifi code is blue-heron." in await command(host, "list")


@pytest.mark.shows("002-079", "002-082")
async def test_switched_off(make_host):
    """With the setting off, the plugin learns nothing."""
    async with make_host(capture={"enabled": False}) as host:
        await say(host, "Remember that the wifi code is blue-heron.")
    async with make_host() as host:
        assert await command(host, "list") == "There are no memories yet."


async def test_redacted_secrets_are_in_the_receipt(make_host):
    """The receipt of a turn counts the secrets that capture left out, by kind, and holds none of them."""
    async with make_host(capture={"minTurnMessages": 1}) as host:
        turn = await say(host, "Remember that the password of the staging server is hunter2.")
        _, decisions = await account(host, turn)
        receipt = str(await host.receipt(turn.id))
    assert ("privacy", "redacted", "password:1") in decisions
    assert "hunter2" not in receipt


async def test_stranger(make_host):
    """A turn of a stranger, or of another user, teaches the owner's memory nothing."""
    async with make_host() as host:
        stranger = await say(host, f"Remember that {SISTER}", trust="public")
        decisions = (await account(host, stranger))[1]
        await say(host, f"Remember that {SISTER}", user="bob", session="s2", trust="familiar")
        await say(host, f"Remember that {SISTER}", user=None, session="s3", trust="inner")
        listed = await command(host, "list")
    assert (decisions[-1], listed) == (("capture", "skip", "trust"), "There are no memories yet.")


FAILED, EDITED, PASSED = (
    {"arguments": {"command": "make test"}, "outcome": "error", "error": "1 failed"},
    {"arguments": {"path": "src/app.py"}},
    {"arguments": {"command": "make test"}},
)
"""The results of tools that raise a fix, in a turn or in several turns of a session."""


@pytest.mark.shows("002-081")
async def test_dropped_turns(make_host):
    """A turn without an answer teaches nothing: neither its prompt nor the results of its tools."""
    async with make_host() as host:
        async with host.turn(f"Remember that {SISTER}", session="s1", user="ann", trust="full") as turn:
            await turn.tool_result(call_id="c", tool="bash", **FAILED)
            await turn.drop("failed")
        await say(host, "Please go on.", results=[EDITED, PASSED])
        assert await command(host, "list") == "There are no memories yet."


async def test_own_recall_is_not_learned(make_host):
    """A user who quotes a recalled memory teaches nothing new, and no mention is counted."""
    async with make_host() as host:
        await say(host, f"Remember that {SISTER}")
        turn = await say(host, QUESTION, session="s2")
        assert SISTER in shown(turn)
        again = await say(host, f"Remember that {SISTER}", session="s2")
        assert await account(host, again) == (
            [("gated", "write:recalled_reference")], [("write", "gated", "recalled_reference")],
        )  # fmt: skip


@pytest.mark.shows("003-006", "003-105", "004-118")
async def test_assistant_and_private_results(make_host):
    """Neither the assistant's claims nor private tool results become memories."""
    private = [each | {"output": SISTER, "private": True} for each in (FAILED, EDITED, PASSED)]
    async with make_host() as host:
        for _ in range(3):
            await say(host, "ok", answer=f"I prefer tabs over spaces. {SISTER}", results=private)
        assert await command(host, "list") == "There are no memories yet."


async def test_external_origin_waits_for_a_person(make_host):
    """A preference that an external tool result holds waits, is not recalled, and holds once the user accepts it."""
    preference = "I prefer tabs over spaces in Python files."
    outside = {"output": f"Web page: {preference}", "external": True}
    async with make_host() as host:
        turn = await say(host, f"Remember: {preference}", results=[outside])
        outcomes, decisions = await account(host, turn)
        recalled = await say(host, "Do I prefer tabs or spaces?", session="s2")
        listed = await command(host, "pending")
        id_ = listed.partition("]")[0].removeprefix("[")
        accepted = await command(host, "pending", id_, "accept")
        after = await say(host, "Do I prefer tabs or spaces?", session="s3")
    assert (outcomes, decisions) == ([("queued", "")], [("approval", "queued", "external_origin")])
    assert (preference in shown(recalled), preference in listed, preference in shown(after)) == (False, True, True)
    assert accepted.endswith("is remembered.")


async def test_the_agent_cannot_approve(make_host):
    """No tool of the model shows or accepts a memory that waits."""
    async with make_host() as host:
        await say(host, RULE)
        assert RULE in await command(host, "pending")
        async with host.turn("?", session="s2", user="ann", trust="full") as turn:
            found = await host.run_tool(turn.id, "memory_search", {"query": "answer short sentences"})
            whole = await host.run_tool(turn.id, "memory_get", {"ids": [1]})
            await turn.commit("Done.")
        names = [tool.name for tool in host.tools["local"]]
    assert (found["results"], whole["observations"]) == ([], [])
    assert not [name for name in names if "review" in name or "pending" in name]


@pytest.mark.shows("003-011", "003-058", "003-068")
async def test_fix(make_host):
    """A command that fails and passes after a change raises a fix."""
    async with make_host() as host:
        await say(host, "Please fix the build.", results=[FAILED, EDITED, PASSED])
        listed = await command(host, "list")
    assert "fix: `make test` failed, and passes after changes to src/app.py." in listed


@pytest.mark.shows("003-107")
async def test_denied_path(make_host):
    """A session that touches a listed path teaches nothing."""
    async with make_host(capture={"paths": ["/srv/clients"]}) as host:
        touched = {"arguments": {"path": "/srv/clients/acme.md"}}
        turn = await say(host, f"Remember that {SISTER}", results=[touched])
        assert (await account(host, turn))[0] == [("gated", "privacy:denied_path")]


async def test_corrections_in_a_chat(make_host):
    """`correct` puts a statement in place of a memory, `undo` forgets the last capture, and both say what they did."""
    async with make_host() as host:
        await say(host, f"Remember that {SISTER}")
        corrected = await command(host, "correct", "1", "Anna", "lives", "in", "Porto.")
        turn = await say(host, QUESTION, session="s2")
        await say(host, "Remember that the wifi code is blue-heron.", session="s3")
        undone = await command(host, "undo")
        listed = await command(host, "recent")
    assert corrected == "2 holds now, in place of 1."
    assert ("Porto" in shown(turn), "Lisbon" in shown(turn)) == (True, False)
    assert ("blue-heron" in undone, "blue-heron" in listed, "Porto" in listed) == (True, False, True)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("correct", ()), ("correct", ("1",)), ("correct", ("x", "y")), ("correct", ("7", "y")), ("undo", ("1",)),
        ("pending", ("1",)), ("pending", ("1", "maybe")), ("pending", ("1", "edit")), ("pending", ("7", "accept")),
    ],
)  # fmt: skip
async def test_refused_commands(make_host, name, words):
    """A command with wrong words, or for an unknown memory, changes nothing and says what to write."""
    async with make_host() as host:
        with pytest.raises(CommandRefused, match=r"ID|id|takes no words"):
            await command(host, name, *words)


class Model:
    """A small model of a host that gives one answer."""

    def __init__(self, answer):
        self.answer, self.prompts = answer, []

    async def complete(self, prompt, *, max_tokens):
        """Return the answer."""
        self.prompts.append((prompt, max_tokens))
        return self.answer


@pytest.mark.shows("003-132")
async def test_small_model(make_host):
    """With the extractor `model` the host's small model is asked, and the receipt says why rules answered instead."""
    model = Model("no JSON")
    async with make_host(services=Services(small_model=model), capture={"extractor": "model"}) as host:
        turn = await say(host, f"Remember that {SISTER}")
        outcomes, decisions = await account(host, turn)
    assert (outcomes, decisions, len(model.prompts)) == (
        [("stored", "")], [("capture", "rules", "answer_not_json")], 1,
    )  # fmt: skip


async def test_turns_left_in_a_shared_database(make_host, tmp_path, monkeypatch):
    """A turn that another process left in a database of several projects is captured once a turn shows whose it is."""
    shared = {"databasePath": str(tmp_path / "shared.db"), "project": "ours"}
    with monkeypatch.context() as killed:
        killed.setattr(TurnCapture, "flush", _nothing)
        async with make_host(**shared) as host:
            await say(host, SISTER)
    async with make_host(**shared | {"project": "theirs"}) as host:
        await say(host, "What is the time?")
    async with make_host(**shared) as host:
        before = await command(host, "list")
        await say(host, "What is the time?", session="another")
    async with make_host(**shared) as host:
        assert (False, True) == (SISTER in before, SISTER in await command(host, "list"))


async def test_a_capture_that_runs_when_the_host_closes(make_host, tmp_path, monkeypatch):
    """If the model hangs when the host closes, rules end the capture that runs; what else was left waits unclaimed."""
    folder, asked = tmp_path / "state", asyncio.Event()

    class Hanging:
        async def complete(self, prompt, *, max_tokens):
            asked.set()
            await asyncio.Event().wait()

    with monkeypatch.context() as killed:
        killed.setattr(TurnCapture, "flush", _nothing)
        async with make_host() as host:
            turns = [await say(host, SISTER), await say(host, RULE, session="s2")]
    monkeypatch.setattr(plugin, "MODEL_SECONDS", 0.05)
    async with make_host(services=Services(small_model=Hanging()), capture={"extractor": "model"}):
        await asked.wait()
    first, second = (later_events(TrailReader(folder), folder, recorded_turns(folder, each.id)[-1]) for each in turns)
    assert [(each.facts["outcomes"], each.facts["fallback"]) for each in first] == [
        (["stored"], "model_failed:timeout")
    ]
    with contextlib.closing(apsw.Connection(str(folder / "plugins" / "local" / "memory.db"))) as connection:
        waiting = connection.execute("SELECT session, attempts FROM waiting_turns").fetchall()
    assert (second, waiting) == ([], [("s2", 0)])


async def _nothing(_):
    """Do nothing, in place of a method."""


async def test_a_tool_turn_is_no_person(make_host):
    """A turn that a tool has caused teaches nothing."""
    async with make_host() as host:
        await say(host, f"Remember that {SISTER}", actors=Actors(trigger="tool"))
        assert await command(host, "list") == "There are no memories yet."


async def test_evidence_is_shown_and_erased(make_host, tmp_path):
    """A whole memory shows the words that it rests on, and forgetting it erases them from all files."""
    said = f"Hello! Remember that {SISTER}"
    async with make_host() as host:
        await say(host, said)
        async with host.turn("?", session="s2", user="ann", trust="full") as turn:
            found = await host.run_tool(turn.id, "memory_get", {"ids": [1]})
            await turn.commit("Done.")
        await command(host, "forget", "1", "yes")
    files = [each for each in (tmp_path / "state" / "plugins" / "local").rglob("*") if each.is_file()]
    assert [each["evidence"] for each in found["observations"]] == [said]
    assert files
    assert [each.name for each in files if b"Hello! Remember" in each.read_bytes()] == []


async def test_what_another_process_erases_stays_erased(make_host, tmp_path):
    """A chat that goes on neither recalls what another process has erased of its user, nor stores words of its last turn."""
    ann = Owner(user="ann")
    async with make_host(capture={"minTurnMessages": 20}) as host:
        before = await say(host, f"Remember that {SISTER}")
        before = await say(host, QUESTION, "In Lisbon.", results=[{"output": "Lisbon: sunny.", "external": True}])
        with MemoryEngine.open(tmp_path / "state" / "plugins" / "local") as engine:
            engine.erase_owner(ann)
            after = await say(host, QUESTION, results=[{"output": "Nothing was found.", "external": True}])
            await say(host, "What is the time?")
            waiting = [
                each.content for store in engine.stores for each in store.queue.waiting(ann, ALL_PROJECTS, limit=10)
            ]

    assert (True, False) == (SISTER in shown(before), "Lisbon" in shown(after))
    said = [[each["text"] for each in json.loads(content)["said"]] for content in waiting]
    outside = "Nothing was found."
    assert [[outside, QUESTION, "Yes."], [outside, "Yes.", "What is the time?", "Yes."]] == said
