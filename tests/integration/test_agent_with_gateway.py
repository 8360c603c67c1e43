"""The agent with the Memory Gateway: whole runs of `AgentLoop` with the plugin, against a gateway on loopback."""

import json
from collections import deque
from importlib.metadata import entry_points

import attrs
import pytest

from beaver_hooks.agent.factory import EngineLoader
from beaver_hooks.agent.loop import AgentLoop
from beaver_hooks.agent.messages import Completion
from beaver_hooks.agent.skills import ActiveSkill, SkillLibrary, activation_text
from beaver_hooks.tools.outcomes import ToolCall
from beaver_hooks_curated import Operation, Target
from beaver_hooks_gateway import MemoryGatewayService
from beaver_hooks_gateway.plugin import RULE
from beaver_hooks_gateway.testing import FakeGateway, Fault

BASE = "Be brief."
KNOWN = "Likes tea."
RECALLED = {"id": "ep_1", "session_id": "chat:s0", "text": "We chose PostgreSQL.", "score": 0.5, "raw": {"n": "hidden"}}
SKILL = ActiveSkill(name="maps", text="Draw maps.")
YES = Completion(text="PostgreSQL.")
OPERATIONS = (
    {"action": "add", "target": "memory", "content": "Uses vim."},
    {"action": "replace", "target": "user", "old_text": "Likes tea", "content": "Likes coffee."},
    {"action": "remove", "target": "memory", "old_text": "Uses vim"},
)
"""All that the model can do with the tool `memory`."""

REMEMBER = tuple(
    Completion(text="Noted.", tool_calls=(ToolCall(id=f"c{number}", name="memory", arguments=json.dumps(each)),))
    for number, each in enumerate(OPERATIONS)
)
"""One after the other: the calls of one answer run side by side."""


class Scripted:
    """A provider that follows a script, and records when it was asked and with which messages and tools."""

    def __init__(self, log, *script):
        self.log, self.script, self.asked = log, deque(script), []

    async def complete(self, messages, *, tools=(), on_delta=None):
        self.log.append("model")
        self.asked.append(([*messages], [each["name"] for each in tools]))
        return self.script.popleft() if self.script else YES

    async def close(self):
        """Do nothing: this provider holds no resource."""

    @property
    def system(self):
        """The system prompt of the first request."""
        return "\n".join(each.text for each in self.asked[0][0] if each.role == "system")

    @property
    def others(self):
        """Role and text of the other messages of the first request."""
        return [(each.role, each.text) for each in self.asked[0][0] if each.role != "system"]


@attrs.define(kw_only=True)
class Agent:
    """A loaded agent, its scripted provider, and a log of the events in their order."""

    engine: object
    provider: Scripted
    log: list

    async def run(self, prompt="What did we choose?", **options):
        """Run one prompt to its end, including the plugins' background learning."""
        result = await AgentLoop(self.engine).run(prompt, "s1", trust="full", **options)
        self.log.append("answered")
        await self.engine.host.drain()
        return result

    @property
    def curated_files(self):
        folder = self.engine.loaded.state_folder / "plugins" / "curated"
        return {path.name: path.read_bytes() for path in folder.glob("*.md")}


@pytest.fixture
async def gateway(canary):
    """A gateway that recalls one thing, and whose key must not turn up anywhere."""
    async with FakeGateway(user_key=canary.secret, results=[RECALLED]) as running:
        yield running


@pytest.fixture
async def load(tmp_path, gateway, sink):
    """Load agents whose configuration names the gateway, unless `section` overrides it."""
    engines = []

    async def make(*script, mode="hybrid", local=None, folder="state", **section):
        identity = {"baseUrl": gateway.base_url, "userId": gateway.user_id, "userKey": gateway.user_key.reveal()}
        given = {key: value for key, value in {**identity, **section}.items() if value is not None}
        others = {point.name for point in entry_points(group="beaver_hooks")} - {"curated", "gateway"}
        memory = {"mode": mode, "gateway": given, **({"local": local} if local else {})}
        config = {
            "memory": {key: value for key, value in memory.items() if value is not None},
            "plugins": {"disabled": sorted(others - ({"local"} if local else set()))},
            "agent": {"systemPrompt": BASE},
            "host": {"stateFolder": folder, "blockedAfterSeconds": 60},
        }
        path = tmp_path / "config.json"
        path.write_text(json.dumps(config))
        engine = await EngineLoader(path, sinks=[sink], environment={}).load()
        engines.append(engine)
        log = []
        gateway.answered = log.append
        engine.provider = Scripted(log, *script)
        if engine.plugin("curated") is not None:
            know(engine)
        return Agent(engine=engine, provider=engine.provider, log=log)

    yield make
    for engine in engines:
        await engine.close()


def know(engine):
    """Put one entry into USER.md."""
    engine.plugin("curated").service.change(Target.USER, [Operation(action="add", content=KNOWN)])


def teach(engine):
    """Add a skill."""
    folder = engine.loaded.state_folder / "skills"
    (folder / SKILL.name).mkdir(parents=True)
    (folder / SKILL.name / "SKILL.md").write_text(f"---\nname: {SKILL.name}\ndescription: d\n---\n{SKILL.text}\n")
    engine.skills = SkillLibrary([folder])


def settled(result):
    """Return the result of a run without the parts that differ in each run."""
    calls = [(each.id, each.name, each.outcome) for each in result.tool_calls]
    return result.text, result.status, result.session_id, calls, result.usage


# --- Which memories load ------------------------------------------------------------------------------------------


@pytest.mark.shows("000-013", "000-051", "000-054", "000-111", "000-125")
@pytest.mark.parametrize(
    ("mode", "given", "there"),
    [
        ("hybrid", {}, True),
        ("memory_gateway", {}, True),
        (None, {}, True),
        (None, {"userKey": None}, False),
        ("curated", {}, False),
    ],
    ids=["hybrid", "memory_gateway", "implicit", "degraded", "curated"],
)
async def test_the_service_is_there_while_the_gateway_is(load, mode, given, there):
    """`memory_gateway_service` is the plugin's service where the gateway is in service, else `None`."""
    agent = await load(mode=mode, **given)
    service = agent.engine.memory_gateway_service

    assert (there, there) == (isinstance(service, MemoryGatewayService), service is not None)


@pytest.mark.shows("000-013")
async def test_there_is_no_service_once_the_gateway_is_gone(load):
    """After the gateway plugin is unregistered, the agent has no gateway service."""
    agent = await load()
    await agent.engine.host.unregister("gateway")

    assert None is agent.engine.memory_gateway_service


@pytest.mark.shows("001-001", "001-003", "001-018", "001-042", "001-095", "001-117")
async def test_the_exclusive_mode_is_one_memory(load):
    """The mode `memory_gateway` loads neither the curated nor an enabled local memory; recall and persistence go on."""
    agent = await load(mode="memory_gateway", local={"enabled": True})
    await agent.run()
    states = {name: health.state for name, health in agent.engine.status.items() if health.state != "disabled"}

    assert {"gateway": "ok", "host": "ok"} == states
    assert ["session_search"] == agent.provider.asked[0][1]
    assert f"{BASE}\n\n{RULE}" == agent.provider.system
    assert ["search", "model", "answered", "add", "flush"] == agent.log


@pytest.mark.shows("000-047", "000-048", "000-055", "000-140", "001-002", "001-042", "001-116")
@pytest.mark.parametrize("mode", ["curated", "hybrid"])
async def test_the_snapshot_and_the_tool_are_there_in_both_modes(load, mode):
    """The model gets the curated snapshot and the tool `memory`, with a gateway and without one."""
    agent = await load(mode=mode)
    await agent.run()

    assert ["session_search", "memory"] == agent.provider.asked[0][1]
    assert KNOWN in agent.provider.system


# --- Recall -------------------------------------------------------------------------------------------------------


@pytest.mark.shows("000-014", "000-064", "000-066", "000-141", "001-034", "001-051", "001-052", "001-053", "001-109")
async def test_the_search_comes_before_the_model_is_asked(load, gateway):
    """The gateway is searched for the prompt, then the model is asked, and has the curated snapshot as ever."""
    agent = await load()
    await agent.run("What did we choose?")
    (searched,) = gateway.bodies("search")

    assert ["search", "model"] == agent.log[:2]
    assert ("What did we choose?", "s1") == (searched["query"], searched["conversation_id"])
    assert KNOWN in agent.provider.system


@pytest.mark.shows("000-014", "000-073", "000-075", "000-078", "000-142", "001-034", "001-059", "001-060", "001-063")
@pytest.mark.shows("001-110")
async def test_what_was_recalled_stands_before_the_prompt_and_outside_the_system_prompt(load):
    """Recalled text is a message of its own after the skills and before the history, never in the system prompt."""
    agent = await load()
    teach(agent.engine)
    await agent.run("Hello.")
    agent.provider.asked.clear()
    await agent.run("What did we choose?", skills=[SKILL.name])
    activation, recalled, *rest = agent.provider.others

    assert ("user", activation_text(SKILL)) == activation
    assert ("user", True) == (recalled[0], "| We chose PostgreSQL." in recalled[1])
    assert [("user", "Hello."), ("assistant", "PostgreSQL."), ("user", "What did we choose?")] == rest
    assert "We chose" not in agent.provider.system


@pytest.mark.shows("000-077", "000-083", "000-143", "001-062", "001-111")
@pytest.mark.parametrize(
    ("mode", "given", "active"),
    [("hybrid", {}, True), ("memory_gateway", {}, True), (None, {"userKey": None}, False), ("curated", {}, False)],
    ids=["hybrid", "memory_gateway", "degraded", "curated"],
)
async def test_the_rule_is_there_only_while_the_gateway_is(load, mode, given, active):
    """The system prompt has the rule that recalled text is untrusted exactly while the gateway is active."""
    agent = await load(mode=mode, **given)
    await agent.run()

    assert active == (RULE in agent.provider.system)


# --- Persistence --------------------------------------------------------------------------------------------------


@pytest.mark.shows("000-015", "000-053", "000-086", "000-092", "000-144", "001-035", "001-065", "001-070", "001-071")
@pytest.mark.shows("001-112")
async def test_add_and_flush_come_after_the_answer_once_each(load):
    """The turn is added and flushed once, after the final answer, however many rounds of tools it has."""
    agent = await load(*REMEMBER)
    await agent.run()

    assert ["search", *["model"] * 4, "answered", "add", "flush"] == agent.log


@pytest.mark.shows("000-026", "000-076", "000-098", "000-123", "000-145", "001-017", "001-061", "001-075", "001-113")
async def test_nothing_but_prompt_and_answer_is_added(load, gateway):
    """No tool call or result, no system prompt, no curated text, no skill and nothing recalled is sent to be kept."""
    agent = await load(*REMEMBER)
    teach(agent.engine)
    await agent.run("Which one?", skills=[SKILL.name])
    (sent,) = [each.raw.decode() for each in gateway.received if each.operation == "add"]
    never = (BASE, "tea", "vim", "coffee", "Noted", 'memory"', "maps", "We chose", "hidden", "Memory Gateway", "c1")

    assert [("user", "Which one?"), ("assistant", "PostgreSQL.")] == [
        (each["role"], each["content"]) for each in json.loads(sent)["messages"]
    ]
    assert [] == [each for each in never if each in sent]


@pytest.mark.shows("000-005", "000-019", "000-084", "000-100", "000-123", "000-148")
async def test_the_memory_tool_makes_no_request(load, gateway):
    """The memory tool writes the model's changes to the curated files, and sends none of them to the gateway."""
    agent = await load(*REMEMBER)
    result = await agent.run()

    assert ["success"] * 3 == [each.outcome for each in result.tool_calls]
    assert ("Likes coffee." in agent.curated_files["USER.md"].decode(), ["search", "add", "flush"]) == (
        True,
        gateway.operations,
    )
    assert [] == [each for each in gateway.received if b"coffee" in each.raw or b"vim" in each.raw]


@pytest.mark.shows("000-005", "000-020", "000-084", "000-099", "000-123", "000-139", "000-149", "001-038", "001-076")
async def test_persistence_changes_no_curated_file(load, gateway):
    """Recall, add and flush leave MEMORY.md and USER.md byte for byte as they were."""
    agent = await load()
    before = agent.curated_files
    await agent.run()

    assert (True, before) == ("USER.md" in before, agent.curated_files)
    assert ["search", "add", "flush"] == gateway.operations


# --- Failures -----------------------------------------------------------------------------------------------------

SEARCHED, ADDED = "memory_gateway_recall_succeeded", "memory_gateway_add_succeeded"
FAILURES = {
    "search": ["memory_gateway_recall_failed", ADDED, "memory_gateway_flush_succeeded"],
    "add": [SEARCHED, "memory_gateway_add_failed"],
    "flush": [SEARCHED, ADDED, "memory_gateway_flush_failed"],
}
REQUESTS = {"search": ["search", "add", "flush"], "add": ["search", "add"], "flush": ["search", "add", "flush"]}


@pytest.mark.shows("000-009", "000-049", "000-113", "000-114", "000-115", "000-116", "000-117", "000-146", "001-004")
@pytest.mark.shows("001-031", "001-085", "001-086", "001-087", "001-089", "001-114")
@pytest.mark.parametrize("fault", [Fault.STATUS_503, Fault.STATUS_401, Fault.RESET_MID_BODY, Fault.INVALID_JSON])
@pytest.mark.parametrize("operation", FAILURES)
async def test_a_failure_does_not_change_what_a_run_comes_to(load, gateway, operation, fault):
    """Search, add or flush fails: the result, the session, the snapshot and the tool are as without the failure."""
    seen, asked = [], []
    for failing in (False, True):
        gateway.behave()
        gateway.received.clear()
        if failing:
            gateway.misbehave(operation, fault)
        agent = await load(*REMEMBER, folder=f"failing-{failing}")
        result = await agent.run()
        messages = [(each.role, each.text) for each in (await agent.engine.sessions.show("s1")).messages]
        prompts = [text.text for asked, _ in agent.provider.asked for text in asked if text.role == "system"]
        tools = [names for _, names in agent.provider.asked]
        seen.append((settled(result), messages, prompts, tools, agent.curated_files))
        asked.append(len(agent.provider.others))

    assert seen[0] == seen[1]
    # A failed search leaves its reference out, and nothing takes its place.
    assert [2, 1 if operation == "search" else 2] == asked
    assert ("PostgreSQL.", "completed") == seen[1][0][:2]
    assert REQUESTS[operation] == gateway.operations


@pytest.mark.shows("000-016", "000-101", "000-120", "000-147", "001-005", "001-011", "001-077", "001-084", "001-085")
@pytest.mark.shows("001-086", "001-087", "001-115")
@pytest.mark.parametrize("operation", FAILURES)
async def test_hidden_events_tell_what_happened_and_hold_no_credential(load, gateway, sink, canary, operation):
    """Success and failure are hidden events of the session, the turns' text and the key are in none of them."""
    agent = await load()
    gateway.misbehave(operation, Fault.STATUS_500)
    await agent.run()
    await agent.engine.events.flush()
    session = await agent.engine.sessions.show("s1", hidden=True)
    told = [each for each in session.events if each.name.startswith("memory_gateway")]

    assert FAILURES[operation] == [each.name for each in told]
    assert ["user", "assistant"] == [each.role for each in session.messages]
    text = repr([(each.name, dict(each.payload)) for each in session.events]) + repr(sink.events)
    canary.assert_clean(text)
    assert [] == [each for each in ("What did we choose", "PostgreSQL", KNOWN) if each in text]


# --- No gateway ---------------------------------------------------------------------------------------------------


@pytest.mark.shows("000-055", "000-083", "000-085", "000-150", "001-064", "001-095", "001-104")
@pytest.mark.parametrize(
    ("mode", "given"), [("curated", {}), (None, {"userKey": None})], ids=["curated", "degraded implicit hybrid"]
)
async def test_without_the_gateway_no_connection_is_made(load, gateway, mode, given):
    """A run makes no request in the mode `curated`, or in the implicit mode without a credential."""
    agent = await load(*REMEMBER, mode=mode, **given)
    result = await agent.run()

    assert ("PostgreSQL.", 0, []) == (result.text, gateway.connections, gateway.received)
