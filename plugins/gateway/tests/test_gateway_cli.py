"""`beaver` with a Memory Gateway: whole runs as processes of their own, and the group `beaver gateway`."""

import json

import processes
import pytest
from processes import Ran

from beaver_hooks_gateway.testing import Fault

RESULT = {"id": "ep_1", "text": "We chose PostgreSQL.", "score": 0.5, "source_scope": "current_chat"}
PROMPT = "Why did we choose PostgreSQL?"


@pytest.fixture
def beaver(gateway, canary, tmp_path):
    """Return a function that runs `beaver` in a folder with a hybrid configuration; its output never holds the key."""

    async def run(*arguments, mode="hybrid", **section):
        whole = {
            "memory": {"gateway": section or in_file(gateway), **({"mode": mode} if mode else {})},
            "plugins": {"disabled": ["tally"]},
        }
        (tmp_path / "config.json").write_text(json.dumps(whole))
        places = {"XDG_STATE_HOME": tmp_path, "BEAVER_CONFIG": tmp_path / "config.json"}
        env = processes.environment(**places, GATEWAY_KEY=canary.reveal())
        ran = await processes.beaver(*arguments, cwd=tmp_path, env=env)
        canary.assert_clean(ran.out + ran.err)
        return ran

    return run


def in_file(gateway):
    return {"baseUrl": gateway.base_url, "userId": gateway.user_id, "userKey": {"env": "GATEWAY_KEY"}}


async def test_a_run_recalls_adds_and_flushes_once(gateway, beaver):
    """The recalled reference reaches the model, and the turn is added once and flushed once."""
    gateway.results = [RESULT]
    ran = await beaver("run", PROMPT, "--session", "s1")

    answer = 'From the references of the memory plugin "gateway": We chose PostgreSQL.'
    (added,) = gateway.bodies("add")
    assert Ran(out=f"{answer}\n", err="", code=0) == ran
    assert ["search", "add", "flush"] == gateway.operations
    assert [("user", PROMPT), ("assistant", answer)] == [(each["role"], each["content"]) for each in added["messages"]]
    assert ["chat:s1"] * 2 == [added["session_id"], gateway.bodies("flush")[0]["session_id"]]


async def test_what_it_did_is_in_the_session_and_the_receipt(gateway, beaver):
    """Hidden events of the session show how each request ended, and `beaver why` counts the recalled references."""
    gateway.results = [RESULT]
    await beaver("run", PROMPT, "--session", "s1")
    shown = json.loads((await beaver("sessions", "show", "s1", "--hidden", "--json")).out)
    why = await beaver("why")

    names = [event["name"] for event in shown["events"] if event["name"].startswith("memory_gateway")]
    kinds = ("recall_succeeded", "add_succeeded", "flush_succeeded")
    assert [f"memory_gateway_{kind}" for kind in kinds] == names
    assert "1 reference of 1 considered reached the model" in why.out


async def test_a_dead_gateway_costs_its_recall_and_nothing_else(gateway, beaver):
    """A failing gateway does not fail the run, and `beaver memory` shows since when it is degraded."""
    gateway.misbehave("search", Fault.STATUS_500)
    gateway.misbehave("add", Fault.STATUS_500)
    ran = await beaver("run", PROMPT)
    memory = await beaver("memory")

    assert ("I was given nothing about that.\n", 0) == (ran.out, ran.code)
    assert "gateway  degraded since " in memory.out


async def test_the_exclusive_mode(gateway, beaver):
    """In the mode `memory_gateway` the model has no tool `memory`."""
    ran = await beaver("run", "Remember that we release on Thursday.", mode="memory_gateway")

    assert ("I have no memory tool here, so I cannot keep that.\n", 0) == (ran.out, ran.code)
    assert ["search", "add", "flush"] == gateway.operations


async def test_ping_search_and_status(gateway, beaver):
    """`ping` succeeds, `search` prints the references of a turn and adds nothing, and `status` makes no request."""
    gateway.results = [RESULT]
    ping = await beaver("gateway", "ping")
    search = await beaver("gateway", "search", "Which", "database?", "--session", "s1")
    asked = len(gateway.operations)
    status = await beaver("gateway", "status")

    assert (0, True) == (ping.code, "answers and accepts the credentials" in ping.out)
    assert (0, True) == (search.code, "| We chose PostgreSQL." in search.out)
    assert ("Which database?", "s1") == (
        gateway.bodies("search")[-1]["query"],
        gateway.bodies("search")[-1]["conversation_id"],
    )
    assert (0, True, "key: set" in status.out) == (status.code, "breaker: closed" in status.out, True)
    assert (["search", "search"], 2) == (gateway.operations, asked)


async def test_a_ping_that_is_refused(gateway, beaver):
    """A refused ping prints a remedy and exits with the code of a failed plugin."""
    gateway.misbehave("search", Fault.STATUS_401)
    ran = await beaver("gateway", "ping")

    assert ("", 6) == (ran.out, ran.code)
    assert "Set memory.gateway.userId and userKey" in ran.err


async def test_a_gateway_that_is_not_in_service(beaver):
    """Without credentials in the implicit mode `ping` fails, and its error names the missing fields."""
    ran = await beaver("gateway", "ping", mode=None, baseUrl="http://127.0.0.1:9")

    assert ("", 6) == (ran.out, ran.code)
    assert "the plugin `gateway` is unavailable" in ran.err
    assert "lacks `userId`, `userKey`" in ran.err
