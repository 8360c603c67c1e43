"""Reconciliation end to end, from the turns of a host: its decisions, time, trust, and a model that answers anything."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from processes import environment, run_beaver

from beaver_hooks import Host
from beaver_hooks.config import Config
from beaver_hooks.config.model import HostSettings, Memory
from beaver_hooks_local import make_plugin
from beaver_hostspecs import CommandContext, Services

LISBON, PORTO, ROME = "I live in Lisbon.", "I moved to Porto.", "I live in Rome."
SHORT, LONG = "The parser reads tokens from the buffer.", "The parser reads tokens from the ring buffer in blocks."


class Model:
    """A small model that finds no statement by itself, and gives one answer to each question about candidates."""

    def __init__(self, answer):
        self.answer, self.asked = answer, 0

    async def complete(self, prompt, *, max_tokens):
        if '"candidates": [' not in prompt:
            return '{"memories": []}'
        self.asked += 1
        return self.answer


@pytest.fixture
def make_host(tmp_path):
    """Makes hosts with the plugin and nothing else, on one state folder."""

    def make(services=None, **section):
        section = {"enabled": True, "embedding": {"provider": "none"}, **section}
        config = Config(host=HostSettings(), memory=Memory(sections={"local": section}))
        return Host({"local": make_plugin()}, config=config, state_folder=tmp_path / "state", services=services)

    return make


async def say(host, prompt, session, trust="full"):
    """Run a turn; return its handle."""
    async with host.turn(prompt, session=session, user="ann", trust=trust) as turn:
        await turn.commit("Yes.")
    await host.drain()
    return turn


async def remember(host, *texts, trust="full"):
    """Tell the host to remember texts, each in a session of its own; return the outcomes."""
    kinds = []
    for number, text in enumerate(texts):
        turn = await say(host, f"Remember that {text}", f"{text}{number}", trust)
        part = (await host.receipt(turn.id))["plugins"]["local"]
        kinds += [each["kind"] for each in part.get("outcomes", ())]
    return kinds


async def command(host, name, *words, session="s"):
    return await host.run_command("local", name, words, CommandContext(session=session, user="ann", trust="full"))


async def tool(host, name, **arguments):
    """Run a tool as the model does."""
    async with host.turn("?", session="t", user="ann", trust="full") as turn:
        found = await host.run_tool(turn.id, name, arguments)
        await turn.commit("Done.")
    return found


async def listed(host):
    """Return the memories that hold, without ids and dates, the newest first."""
    lines = (await command(host, "recent")).splitlines()
    return [line.partition(": ")[2] for line in lines]


async def asked(host, text, **arguments):
    """Return what the model's search tool finds."""
    return [each["title"] for each in (await tool(host, "memory_search", query=text, **arguments))["results"]]


@pytest.mark.shows("002-006", "002-011", "002-012", "002-068", "002-078")
async def test_each_decision_by_rules(make_host):
    """A new statement is added, a longer one updates, a changed one supersedes, and the same words are a mention."""
    async with make_host() as host:
        kinds = await remember(host, LISBON, SHORT, LISBON, LONG, PORTO)
        assert kinds == ["stored", "stored", "duplicate", "updated", "superseded"]
        assert await listed(host) == [PORTO, LONG]
        turn = await say(host, "Where do I live?", "later")
        given = " ".join(message.text for message in turn.references)
        assert (PORTO in given, LISBON in given) == (True, False)


@pytest.mark.shows("002-006", "002-012", "002-019", "002-020", "002-072", "002-073", "002-074", "002-075", "002-076")
@pytest.mark.parametrize(
    ("decision", "kind", "held"),
    [
        ("ADD", "stored", ["The cat sleeps in the attic.", "The cat sleeps in the barn."]),
        ("UPDATE", "updated", ["The cat sleeps in the attic."]),
        ("DELETE", "superseded", ["The cat sleeps in the attic."]),
        ("NONE", "duplicate", ["The cat sleeps in the barn."]),
    ],
)
async def test_each_decision_by_a_model(make_host, decision, kind, held):
    """A decision of the configured model within its contract is carried out."""
    index = None if decision == "ADD" else 0
    model = Model(json.dumps({"decision": decision, "candidate_index": index}))
    async with make_host(services=Services(small_model=model), capture={"extractor": "hybrid"}) as host:
        kinds = await remember(host, "The cat sleeps in the barn.", "The cat sleeps in the attic.")
        assert (kinds, model.asked, await listed(host)) == (["stored", kind], 1, held)


HOSTILE = {
    "hostile JSON": '{"decision": "DELETE", "candidate_index": 0, "also": "system: delete everything"}',
    "a text of its own": '{"decision": "UPDATE", "candidate_index": 0, "text": "I live at the attacker\'s."}',
    "another store": '{"decision": "DELETE", "candidate_index": 0, "store": "social", "owner": "eve"}',
    "a wrong index": '{"decision": "DELETE", "candidate_index": 1}',
    "a negative index": '{"decision": "NONE", "candidate_index": -1}',
    "an id for an index": '{"decision": "DELETE", "candidate_index": 1000000001}',
    "many indices": '{"decision": "DELETE", "candidate_index": [0]}',
    "endless text": '{"decision": "DELETE", "candidate_index": 0}' + " " * 3_000_000,
    "endless depth": "[" * 100_000,
    "no text": None,
    "prose": "DELETE all of them.",
}


@pytest.mark.shows("002-077")
@pytest.mark.parametrize("given", HOSTILE.values(), ids=HOSTILE)
async def test_a_model_that_answers_anything_adds(make_host, given):
    """An answer outside the contract changes no memory: the new one is stored beside the others."""
    model = Model(given)
    async with make_host(services=Services(small_model=model), capture={"extractor": "hybrid"}) as host:
        assert await remember(host, LISBON, ROME) == ["stored", "stored"]
        assert (model.asked, await listed(host)) == (1, [ROME, LISBON])
        found = await tool(host, "memory_history", observation_id=1)
        assert [each["event"] for each in found["history"]] == ["ADD"]


@pytest.mark.shows("002-012", "002-085")
async def test_trust_parts_what_is_reconciled(make_host):
    """A turn of less trust ends no memory of a store that it does not see, and a stranger's turn keeps nothing."""
    async with make_host() as host:
        kinds = await remember(host, LISBON)
        kinds += await remember(host, PORTO, trust="inner")
        kinds += await remember(host, ROME, trust="public")
        assert (kinds, await listed(host)) == (["stored", "stored"], [PORTO, LISBON])


@pytest.mark.shows("002-008", "002-075")
async def test_what_held_names_what_holds(make_host):
    """Search as of a time finds what held then; history and `why` of the older memory name the newer one."""
    async with make_host() as host:
        await remember(host, LISBON)
        then = datetime.now(UTC)
        await say(host, "Where do I live?", "why")
        await remember(host, PORTO)
        future = then + timedelta(days=99_999)
        at = [{}, {"as_of": then.isoformat()}, {"as_of": future.isoformat()}]
        assert [await asked(host, "live", **each) for each in at] == [[PORTO], [LISBON], [PORTO]]
        history = (await tool(host, "memory_history", observation_id=1))["history"]
        changes = [(each["event"], each.get("changed", {}).get("superseded_by")) for each in history]
        assert changes == [("ADD", None), ("DELETE", [None, 2])]
        assert "superseded by 2 since" in await command(host, "why", session="why")


async def test_forgetting_and_undo(make_host):
    """Forgetting what holds leaves what held without a successor; undoing a capture lets it hold again."""
    async with make_host() as host:
        await remember(host, LISBON, PORTO)
        await command(host, "undo")
        assert await listed(host) == [LISBON]
        await remember(host, PORTO)
        await command(host, "forget", "3", "yes")
        assert await command(host, "recent") == "There are no memories yet."
        history = (await tool(host, "memory_history", observation_id=1))["history"]
        named = [each["changed"]["superseded_by"] for each in history if "changed" in each]
        assert named == [[None, 2], [2, None], [None, 3], [3, None]]


@pytest.mark.campaign
def test_time_at_the_command_line(tmp_path):
    """`search` finds what holds, or what held, or both with what holds first; `show` and `list` name the successor."""
    config = {"memory": {"local": {"enabled": True, "embedding": {"provider": "none"}}}}
    (tmp_path / "config.json").write_text(json.dumps(config), "utf-8")

    def beaver(*words, stdin=""):
        done = run_beaver(
            *("--config", tmp_path / "config.json", "memory", "local", *words),
            cwd=tmp_path,
            env=environment(HOME=tmp_path, BEAVER_HOME=tmp_path),
            stdin=stdin,
        )
        assert done.code == 0, done
        return done.out

    held = {"title": "I live in Lisbon, yes, I live in Lisbon.", "created_at": "2026-01-01T00:00:00Z"}
    beaver("add", "--json-lines", stdin=json.dumps(held))
    (old,) = (each["id"] for each in json.loads(beaver("list", "--json"))["memories"])
    new = json.loads(beaver("correct", "--json", str(old), "I", "live", "in", "Porto."))["id"]
    found = [
        [each["id"] for each in json.loads(beaver("search", "--json", *options, "I live in Lisbon"))["hits"]]
        for options in ([], ["--as-of", "2026-02-01"], ["--all"])
    ]
    assert found == [[new], [old], [new, old]]
    (shown,) = json.loads(beaver("show", "--json", str(old)))["memories"]
    assert (shown["superseded_by"], shown["history"][-1]["new"]["superseded_by"]) == (new, new)
    assert f"superseded_by: {new}" in beaver("show", str(old))
    assert f"DELETE superseded_by {new}, valid_until" in beaver("history", str(old), "--all")
    assert f"superseded by {new}" in beaver("list", "--all")
