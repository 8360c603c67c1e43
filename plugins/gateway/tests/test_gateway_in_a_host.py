"""The plugin in a host: recall in its place, add and flush once, in every memory mode."""

import asyncio
import logging
import os
import socket
import subprocess
import sys
import threading
from collections import Counter

import pytest

from beaver_hooks.agent.context import ContextBuilder
from beaver_hooks.agent.skills import ActiveSkill
from beaver_hooks_curated import Operation, Target
from beaver_hooks_gateway import plugin, service
from beaver_hooks_gateway.plugin import RULE
from beaver_hooks_gateway.testing import Fault
from beaver_hostspecs import ConfigurationError, Message
from beaver_hostspecs.testing import RecordingPlugin

TURNS = int(os.environ.get("BEAVER_TURNS", "20"))

SETTINGS = (
    "`baseUrl`, `userId`, `userKey`, `appId`, `projectId`, `scope`, `topK`, `timeoutSeconds`, `flushTimeoutSeconds`,"
    " `recall`, `persist`, `allowInsecureHttp`, `caBundle`, `proxy`, `maxBytes`, `breaker`"
)
RESULT = {
    "id": "ep_1",
    "session_id": "chat:s0",
    "text": "We chose PostgreSQL.",
    "score": 0.5,
    "source_scope": "current_chat",
    "resource_uri": None,
    "raw": {"internal": "never shown"},
}


class Events:
    """Keeps the audit events of the gateway."""

    def __init__(self):
        self.all = []

    def append(self, event):
        self.all.append(event)

    @property
    def gateway(self):
        return [(each.name, dict(each.facts)) for each in self.all if each.name.startswith("memory_gateway")]


@pytest.fixture
def events():
    return Events()


async def run_turn(host, prompt="What did we choose?", answer="PostgreSQL.", session="s1", trust="full"):
    async with host.turn(prompt, session=session, trust="full") as turn:
        await turn.commit(answer)
    await host.drain()
    return turn


@pytest.mark.shows("000-003", "000-004", "000-022", "000-024", "000-025", "000-052", "000-081", "001-010", "001-013")
@pytest.mark.shows("001-015", "001-016", "001-057", "001-094", "003-018", "003-031", "003-103")
async def test_recall_add_and_flush(gateway, make_host, events):
    """A hybrid turn is searched before the prompt, and then added and flushed once after the answer."""
    gateway.results = [RESULT]
    async with make_host(gateway, sinks=[events]) as host:
        turn = await run_turn(host)
        health = str(host.health()["gateway"])

    (message,) = turn.references
    assert ("gateway", "ok") == (message.plugin, health)
    assert "| We chose PostgreSQL." in message.text
    assert "never shown" not in message.text
    assert ["search", "add", "flush"] == gateway.operations
    assert [
        ("memory_gateway_recall_succeeded", {"scope": ["current_chat", "resources"], "result_count": 1}),
        ("memory_gateway_add_succeeded", {"session_id": events.gateway[1][1]["session_id"], "message_count": 2}),
        ("memory_gateway_flush_succeeded", {"session_id": events.gateway[1][1]["session_id"]}),
    ] == events.gateway
    assert "s1" not in events.gateway[1][1]["session_id"]


@pytest.mark.shows("000-078", "000-080")
async def test_recalled_text_stands_outside_the_system_prompt(gateway, make_host):
    """The system prompt holds the rule and the curated block; the references are a message of their own."""
    gateway.results = [RESULT]
    async with make_host(gateway) as host:
        host.plugin("curated").service.change(Target.USER, [Operation(action="add", content="Likes tea.")])
        async with host.turn("What did we choose?", session="s1", trust="full") as turn:
            system = turn.system_prompt("Base.")

    assert (True, True, False) == (RULE in system, "Likes tea." in system, "PostgreSQL" in system)
    assert 1 == len(turn.references)


@pytest.mark.shows("000-005", "000-021", "000-079", "000-082")
async def test_a_fact_that_both_memories_have_is_shown_by_both(gateway, make_host):
    """The curated block and the gateway's message both show it: no memory is compared with another."""
    gateway.results = [{"id": "ep_1", "text": "Likes tea."}, {"id": "ep_2", "text": "Likes coffee instead of tea."}]
    async with make_host(gateway) as host:
        host.plugin("curated").service.change(Target.USER, [Operation(action="add", content="Likes tea.")])
        async with host.turn("What do I like?", session="s1", trust="full") as turn:
            system, (message,) = turn.system_prompt(), turn.references

    assert "Likes tea." in system
    assert ["| Likes tea.", "| Likes coffee instead of tea."] == [
        line for line in message.text.splitlines() if line.startswith("| ")
    ]


@pytest.mark.shows("000-074", "001-059", "001-110")
async def test_the_place_of_what_was_recalled(gateway, make_host):
    """The search runs before the model call, and the references come after skills and before history and prompt."""
    gateway.results = [RESULT]
    skill = ActiveSkill(name="maps", text="Draw maps.")
    async with make_host(gateway) as host:
        host.plugin("curated").service.change(Target.USER, [Operation(action="add", content="Likes tea.")])
        async with host.turn("What did we choose?", session="s1", trust="full") as turn:
            assert ["search"] == gateway.operations
            messages = ContextBuilder.build_messages(
                system_prompt=turn.system_prompt("Base."),
                skills=[skill],
                references=turn.references,
                history=[Message(role="user", text="Hello."), Message(role="assistant", text="Hello!")],
                prompt=turn.prompt,
            )

    texts = [message.text for message in messages]
    assert ["system", "user", "user", "user", "assistant", "user"] == [message.role for message in messages]
    assert [False, False, True, False, False, False] == ["PostgreSQL" in text for text in texts]
    assert (True, True) == ("Likes tea." in texts[0], "Draw maps." in texts[1])


@pytest.mark.shows("000-018", "000-027", "000-050", "000-127")
async def test_both_memories_load_in_the_explicit_hybrid_mode(gateway, make_host):
    """An explicit hybrid mode has both memories, and the tool of the curated one."""
    async with make_host(gateway) as host:
        assert ["curated", "gateway"] == [*host.plugins]
        assert ["memory"] == [tool.name for tool in host.tools["curated"]]


@pytest.mark.shows("001-003", "001-117")
async def test_the_exclusive_mode_has_no_curated_memory(gateway, make_host):
    """The mode `memory_gateway` has neither the tool `memory` nor a curated block; recall and persistence go on."""
    gateway.results = [RESULT]
    async with make_host(gateway, mode="memory_gateway") as host:
        turn = await run_turn(host)
        assert ["gateway"] == [*host.plugins]
        assert [] == [tool for offered in host.tools.values() for tool in offered]
        assert f"Base.\n\n{RULE}" == turn.system_prompt("Base.")

    assert 1 == len(turn.references)
    assert ["search", "add", "flush"] == gateway.operations


@pytest.mark.shows("000-034", "000-126", "001-064")
async def test_the_curated_mode_ignores_the_gateway(gateway, make_host):
    """The mode `curated` ignores the section, even a wrong one, and makes no request."""
    async with make_host(gateway, mode="curated", topK=0, nonsense=True) as host:
        turn = await run_turn(host)
        assert ["curated"] == [*host.plugins]
        assert ["memory"] == [tool.name for tool in host.tools["curated"]]
        assert RULE not in turn.system_prompt()

    assert (0, ()) == (gateway.connections, turn.references)


@pytest.mark.shows("000-031", "000-108", "000-111", "000-124", "000-125", "001-020", "001-096")
async def test_an_implicit_hybrid_without_credentials(make_host, caplog):
    """Without mode and credentials the gateway is left out with one warning, and curated memory works."""
    with caplog.at_level(logging.WARNING):
        async with make_host(mode=None) as host:
            turn = await run_turn(host)
            health = host.health()["gateway"]
            assert ["curated"] == [*host.plugins]
            assert ["memory"] == [tool.name for tool in host.tools["curated"]]

    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert 1 == len(warnings)
    assert "memory.gateway lacks `baseUrl`, `userId`, `userKey`" in warnings[0]
    assert ("unavailable", False) == (health.state, RULE in turn.system_prompt())


@pytest.mark.shows("000-031", "000-109", "000-130")
@pytest.mark.parametrize("missing", ["baseUrl", "userId", "userKey"])
async def test_an_implicit_hybrid_that_lacks_one_credential(gateway, make_host, missing, caplog, canary):
    """The gateway is left out if one required field is missing, and the warning names it without a credential."""
    with caplog.at_level(logging.DEBUG):
        async with make_host(gateway, mode=None, **{missing: None}) as host:
            await run_turn(host)
            reason = host.health()["gateway"].reason

    assert f"lacks `{missing}`;" in reason
    assert 0 == gateway.connections
    canary.assert_clean(reason, caplog.text)


async def test_an_implicit_hybrid_with_credentials_uses_them(gateway, make_host):
    """Credentials without a mode are used."""
    async with make_host(gateway, mode=None) as host:
        await run_turn(host)

    assert ["search", "add", "flush"] == gateway.operations


@pytest.mark.shows("000-032", "000-033", "000-051", "000-112", "000-128", "001-022", "001-030", "001-090", "001-098")
@pytest.mark.parametrize("mode", ["hybrid", "memory_gateway"])
@pytest.mark.parametrize("missing", ["baseUrl", "userId", "userKey"])
async def test_a_chosen_gateway_needs_its_credentials(gateway, make_host, mode, missing, canary):
    """A mode that was chosen fails loading over a missing field, and names it without a value."""
    with pytest.raises(ConfigurationError) as caught:
        await make_host(gateway, mode=mode, **{missing: None}).open()

    error = caught.value
    assert (f"memory.gateway.{missing}", "is missing; set it, the Memory Gateway needs it") == (
        error.path,
        error.problem,
    )
    canary.assert_clean(str(error), repr(error), repr(error.__cause__))


@pytest.mark.shows("000-032", "000-036", "000-039", "000-041", "000-051", "000-112", "000-129", "000-130", "001-022")
@pytest.mark.shows("001-024", "001-027", "001-029", "001-030", "001-041", "001-098", "001-099")
@pytest.mark.parametrize(
    ("section", "expected"),
    [
        ({"scope": []}, "memory.gateway.scope: must not be empty"),
        ({"scope": ["current_chat", "current_chat"]}, "memory.gateway.scope: must not name anything twice"),
        (
            {"scope": ["everything"]},
            "memory.gateway.scope[0]: must be one of `current_chat`, `resources`, `all_user_memory`",
        ),
        ({"topK": 0}, "memory.gateway.topK: must be between 1 and 100"),
        ({"topK": 101}, "memory.gateway.topK: must be between 1 and 100"),
        ({"timeoutSeconds": 0}, "memory.gateway.timeoutSeconds: must be a number above 0"),
        ({"timeoutSeconds": -1}, "memory.gateway.timeoutSeconds: must be a number above 0"),
        ({"userId": " "}, "memory.gateway.userId: must not be blank"),
        ({"userKey": ""}, "memory.gateway.userKey: must not be empty"),
        ({"userKey": "  "}, "memory.gateway.userKey: must not be blank"),
        ({"baseUrl": ""}, "memory.gateway.baseUrl: must not be blank"),
        ({"apiKey": "x"}, f"memory.gateway.apiKey: is not a setting; the settings are {SETTINGS}"),
    ],
)
async def test_a_wrong_value_fails_loading_in_every_mode(gateway, make_host, section, expected, canary):
    """A wrong value fails loading in every mode, and the error does not show the value."""
    for mode in (None, "hybrid", "memory_gateway"):
        with pytest.raises(ConfigurationError) as caught:
            await make_host(gateway, mode=mode, **section).open()

        assert expected == f"{caught.value.path}: {caught.value.problem}".partition(" (in ")[0]
        canary.assert_clean(str(caught.value), repr(caught.value))


@pytest.mark.shows("000-028", "000-129", "001-021", "001-098")
async def test_an_unknown_mode_fails_loading(gateway, make_host, canary):
    """A mode that does not exist fails loading."""
    with pytest.raises(ConfigurationError) as caught:
        make_host(gateway, mode="gateway")

    assert "memory.mode" == caught.value.path
    canary.assert_clean(str(caught.value))


@pytest.mark.shows("000-049", "000-085", "000-143")
async def test_unregistered_in_a_live_session(gateway, make_host):
    """After the plugin is unregistered, the next turn has no recall, persistence or rule, and curated memory stays."""
    gateway.results = [RESULT]
    async with make_host(gateway) as host:
        host.plugin("curated").service.change(Target.USER, [Operation(action="add", content="Likes tea.")])
        before = await run_turn(host)
        await host.unregister("gateway")
        after = await run_turn(host)
        tools = [tool.name for tool in host.tools["curated"]]

    assert (1, 0) == (len(before.references), len(after.references))
    assert before.system_prompt().replace(f"{RULE}\n\n", "") == after.system_prompt()
    assert ["memory"] == tools
    assert ["search", "add", "flush"] == gateway.operations
    assert 0 == gateway.open


@pytest.mark.shows("000-096", "001-073")
@pytest.mark.parametrize("reason", ["failed", "cancelled", "blocked", "abandoned"])
async def test_a_turn_without_an_answer_is_not_added(gateway, make_host, reason):
    """Turns that end in an error are not persisted."""
    async with make_host(gateway) as host:
        turn = await host.open_turn("What did we choose?", session="s1", trust="full")
        await turn.drop(reason)
        await host.drain()

    assert ["search"] == gateway.operations


@pytest.mark.shows("000-097", "001-074")
async def test_every_completed_answer_is_added(gateway, make_host):
    """A fallback answer, such as at a tool limit, is persisted like any other."""
    async with make_host(gateway) as host:
        await run_turn(host, answer="I have reached the limit of tool calls.")

    assert "I have reached the limit of tool calls." == gateway.bodies("add")[0]["messages"][1]["content"]


@pytest.mark.shows("001-017", "001-061", "001-075", "001-113")
async def test_nothing_but_prompt_and_answer_is_sent(gateway, make_host):
    """The added messages are the prompt and the answer, without tools, system prompt, curated block or references."""
    gateway.results = [RESULT]
    async with make_host(gateway) as host:
        host.plugin("curated").service.change(Target.USER, [Operation(action="add", content="Likes tea.")])
        async with host.turn("Hello?", session="s1", trust="full") as turn:
            await turn.tool_result(tool="search", call_id="c1", arguments={"q": "tool input"}, output="tool output")
            await turn.commit("Hello.")
        await host.drain()

    (added,) = [each.raw.decode() for each in gateway.received if each.operation == "add"]
    assert ["Hello?", "Hello."] == [each["content"] for each in gateway.bodies("add")[0]["messages"]]
    assert [] == [each for each in ("tea", "tool", "PostgreSQL", "Memory Gateway", "never shown") if each in added]


@pytest.mark.shows("000-137")
async def test_text_that_quotes_recall_is_sent_verbatim(gateway, make_host):
    """Prompt and answer are sent verbatim, even when they repeat a reference."""
    gateway.results = [RESULT]
    async with make_host(gateway) as host:
        for _ in range(2):
            await run_turn(host, prompt=RESULT["text"], answer=RESULT["text"])

    sent = [each["content"] for body in gateway.bodies("add") for each in body["messages"]]
    assert [RESULT["text"]] * 4 == sent


async def test_the_memory_tool_makes_no_request(gateway, make_host):
    """The curated tool writes its files and never calls the gateway."""
    async with make_host(gateway) as host:
        turn = await host.open_turn("Remember tea.", session="s1", trust="full")
        before = gateway.operations
        await host.run_tool(turn.id, "memory", {"action": "add", "target": "user", "content": "Likes tea."})
        assert before == gateway.operations == ["search"]
        await turn.drop()


async def test_persisting_changes_no_curated_file(gateway, make_host, tmp_path):
    """Recall and persistence touch neither MEMORY.md nor USER.md."""
    folder = tmp_path / "state" / "plugins" / "curated"
    async with make_host(gateway) as host:
        host.plugin("curated").service.change(Target.USER, [Operation(action="add", content="Likes tea.")])
        before = {path.name: path.read_bytes() for path in folder.iterdir()}
        await run_turn(host)
        assert before == {path.name: path.read_bytes() for path in folder.iterdir()}

    assert ["search", "add", "flush"] == gateway.operations


async def test_what_plugins_see_after_the_answer_holds_nothing_recalled(gateway, make_host):
    """`after_prompt` gets neither an answer nor a history that holds references."""
    gateway.results = [RESULT]
    witness = RecordingPlugin()
    async with make_host(gateway) as host:
        await host.register("witness", witness)
        await run_turn(host, answer="It is decided.")

    (call,) = witness.calls_of("after_prompt")
    assert "PostgreSQL" not in repr((call.arguments["answer"].messages, call.arguments["turn"].history))


@pytest.mark.shows("000-015")
async def test_many_turns_at_once(gateway, make_host):
    """Turns at once are all recalled, added and flushed, and leave no connection or task.

    `BEAVER_TURNS` says how many; 20 by default, 200 in `make test-all`, 1,000 in `make faults`.
    """
    gateway.results = [RESULT]
    tasks = asyncio.all_tasks()

    async def one(host, number):
        async with host.turn("What did we choose?", session=f"s{number}", trust="full") as turn:
            await turn.commit("PostgreSQL.")
        return len(turn.references)

    async with make_host(gateway, timeoutSeconds=60) as host:
        recalled = await asyncio.gather(*[one(host, number) for number in range(TURNS)])
        await host.drain()
        assert "ok" == str(host.health()["gateway"])

    assert [1] * TURNS == recalled
    assert {"search": TURNS, "add": TURNS, "flush": TURNS} == Counter(gateway.operations)
    assert TURNS == len({body["session_id"] for body in gateway.bodies("add")})
    assert set() == asyncio.all_tasks() - tasks - {*gateway._open}
    await asyncio.gather(*filter(None, gateway._open))
    assert 0 == gateway.open


async def test_one_shot_processes_share_the_breaker(gateway, make_host, events):
    """Hosts that live for one turn share the breaker: after the third failure the next host makes no search."""
    gateway.misbehave("search", Fault.STATUS_503)
    for _ in range(4):
        async with make_host(gateway, sinks=[events], breaker={"failures": 3}) as host:
            turn = await run_turn(host)
            health = str(host.health()["gateway"])

    assert 3 == gateway.operations.count("search")
    assert 4 == gateway.operations.count("add")
    names = [name for name, _ in events.gateway if "recall" in name or "breaker" in name]
    assert [
        *["memory_gateway_recall_failed"] * 3,
        "memory_gateway_breaker_opened",
        "memory_gateway_recall_failed",
    ] == names
    (decision,) = turn.receipt.plugins["gateway"].decisions
    assert ("breaker", "skipped", "server_error") == (decision.gate, decision.verdict, decision.reason)
    assert "reported: breaker_open" in health


async def test_a_gateway_that_is_down_is_not_suspended(gateway, make_host, events):
    """A failing gateway is not suspended by the host: every turn calls the plugin, which reports its own failure."""
    gateway.misbehave("search", Fault.STATUS_503)
    async with make_host(gateway, sinks=[events], breaker={"failures": 5}) as host:
        turns = [await run_turn(host) for _ in range(8)]

        assert (0, False) == (host.health()["gateway"].suspension.failures, host.health()["gateway"].suspension.active)
    names = [name for name, _ in events.gateway if name.startswith("memory_gateway_recall")]
    assert ["memory_gateway_recall_failed"] * 8 == names
    assert [True] * 8 == ["before_prompt" in each.receipt.plugins["gateway"].milliseconds for each in turns]


async def test_recovering(gateway, make_host):
    """Each plane of a gateway that is back recovers by its own success."""
    async with make_host(gateway) as host:
        for operation in ("search", "add", "flush"):
            gateway.misbehave(operation, Fault.STATUS_500)
            await run_turn(host)
            broken = host.health()["gateway"].state
            gateway.behave()
            await run_turn(host)
            assert ("degraded", "ok") == (broken, host.health()["gateway"].state)


async def test_a_small_deadline_cap_is_kept_to(gateway, make_host, tmp_path):
    """Under a small deadline cap of the host the client ends first, and reports the timeout itself."""
    gateway.misbehave("search", Fault.READ_TIMEOUT)
    host = make_host(gateway, timeoutSeconds=60)
    config = tmp_path / "config.json"
    config.write_text(config.read_text().replace('"host": {', '"host": {"deadlineCapSeconds": 0.4, '))
    async with type(host).from_config(config, environment={}) as host:
        turn = await host.open_turn("What?", session="s1", trust="full")
        degraded, failures = turn.receipt.plugins["gateway"].degraded, turn.receipt.plugins["gateway"].failures

    assert (("recall_timeout",), ()) == (degraded, failures)


async def test_a_lookup_that_hangs_is_nothing_to_others(make_host, events, monkeypatch):
    """Turns keep their curated memory while the lookup of the gateway's name hangs."""
    going, real = threading.Event(), socket.getaddrinfo

    def getaddrinfo(host, *arguments, **keywords):
        if host == "gateway.example":
            going.wait()
        return real(host, *arguments, **keywords)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    section = {"baseUrl": "https://gateway.example", "userId": "u", "userKey": "uk_of_a_lookup", "timeoutSeconds": 0.2}
    try:
        async with make_host(sinks=[events], breaker={"enabled": False}, **section) as host:
            host.plugin("curated").service.change(Target.USER, [Operation(action="add", content="Likes tea.")])
            many = await asyncio.gather(
                *[host.open_turn("Why?", session=f"s{number}", trust="full") for number in range(40)]
            )
            turns = [*many, await host.open_turn("Why?", session="s", trust="full")]
            for turn in turns:
                await turn.drop()
    finally:
        going.set()

    assert [True] * 41 == ["Likes tea." in turn.system_prompt() for turn in turns]
    assert {()} == {turn.receipt.plugins[name].failures for turn in turns for name in ("curated", "gateway")}
    expected = ("memory_gateway_recall_failed", {"operation": "search", "category": "timeout", "status": None})
    assert [expected] * 41 == events.gateway


def test_a_lookup_that_hangs_does_not_keep_the_process(tmp_path):
    """The process ends although a lookup still hangs."""
    script = f"""
import asyncio, socket, time
from beaver_hooks import Host
from beaver_hooks.config import parse_config
socket.getaddrinfo = lambda *_, **__: time.sleep(300)
gateway = '{{"baseUrl": "https://gateway.example", "userId": "u", "userKey": "uk_of_a_lookup", "timeoutSeconds": 0.2}}'
async def main():
    config = parse_config('{{"memory": {{"gateway": ' + gateway + '}}}}')
    async with Host(entry_points=["curated", "gateway"], config=config, state_folder={str(tmp_path)!r}) as host:
        turn = await host.open_turn("Why?", session="s1", trust="full")
        print(turn.receipt.plugins["gateway"].degraded)
        await turn.drop()
asyncio.run(main())
"""
    ran = subprocess.run([sys.executable, "-c", script], check=False, timeout=100, capture_output=True, text=True)

    assert (0, "('recall_timeout',)") == (ran.returncode, ran.stdout.strip())


async def test_many_turns_at_a_gateway_that_hangs(gateway, make_host, events, monkeypatch):
    """Each turn reports one timeout of the client, and the breaker opens once."""
    # A busy machine must not decide the result.
    monkeypatch.setattr(plugin, "RECALL_GRACE", 30.0)
    monkeypatch.setattr(service, "PATIENCE", 15.0)
    gateway.misbehave("search", Fault.READ_TIMEOUT)
    async with make_host(gateway, sinks=[events], timeoutSeconds=1) as host:
        turns = await asyncio.gather(
            *[host.open_turn("Why?", session=f"s{number}", trust="full") for number in range(300)]
        )
        for turn in turns:
            await turn.drop()

    assert {"memory_gateway_recall_failed": 300, "memory_gateway_breaker_opened": 1} == Counter(
        name for name, _ in events.gateway
    )
    assert {"timeout"} == {facts["category"] for _, facts in events.gateway}
    assert {()} == {turn.receipt.plugins["gateway"].failures for turn in turns}


async def test_a_key_that_is_repeated_does_not_reach_the_model(gateway, make_host, canary):
    """A key that the gateway returns is masked in every field."""
    key = canary.reveal()
    names = ("text", "id", "session_id", "source_scope", "resource_uri")
    gateway.results = [dict.fromkeys(names, f"a {key} b"), {"text": "c", "id": key}, {"text": "d", "id": key[::-1]}]
    async with make_host(gateway) as host, host.turn("Why?", session="s1", trust="full") as turn:
        (message,) = turn.references

    assert "| a [secret] b" in message.text
    canary.assert_clean(message.text, repr(message), repr(turn.receipt))
