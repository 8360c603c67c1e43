"""The plugin in a host: opt-in, recall, tools and commands from end to end, health, restart, another process."""

import asyncio
import json
import logging
import re
import socket
import subprocess
import sys
import threading
from importlib.metadata import entry_points

import pytest
from processes import environment, run_beaver
from selection import campaign

from beaver_hooks import Host
from beaver_hooks.audit.memory_sink import MemorySink
from beaver_hooks.config import Config, parse_config
from beaver_hooks.config.model import HostSettings, Memory
from beaver_hooks_local import make_plugin
from beaver_hooks_local.plugin import OFF, RULE, Local
from beaver_hooks_local.settings import LocalSettings
from beaver_hooks_local.visibility import Visibility
from beaver_hostspecs import CommandContext, ConfigurationError, NotAllowed, PluginUnavailable, Setup, Trust
from beaver_hostspecs.testing import FrozenClock, RecordingReport, make_canary, make_turn
from beaver_memory.embedding.settings import EmbeddingSettings
from beaver_memory.errors import EngineError, RuntimeNotOpen
from beaver_memory.search.formulas import FORMULAS
from beaver_memory.views import Reach

STABLE = "Billing is deployed from the branch stable."
MEETING = "Billing is deployed from the branch stable, as decided in meeting {}, whatever the wiki says."
QUESTION = "From which branch is billing deployed?"
TOOLS = [
    "memory_search",
    "memory_timeline",
    "memory_get",
    "memory_write",
    "memory_history",
    "memory_people",
    "memory_sessions",
]


@pytest.fixture
def make_host(tmp_path):
    """Makes hosts with the plugin and nothing else, on one state folder."""

    def make(plugin=None, sinks=(), host=None, **section):
        section = {"enabled": True, "embedding": {"provider": "none"}, **section}
        config = Config(host=host or HostSettings(), memory=Memory(sections={"local": section}))
        return Host({"local": plugin or make_plugin()}, config=config, state_folder=tmp_path / "state", sinks=sinks)

    return make


async def run_turn(host, prompt=QUESTION, answer="Yes.", **fields):
    async with host.turn(prompt, **{"session": "s1", "user": "ann", "trust": "full", **fields}) as turn:
        await turn.commit(answer)
    await host.drain()
    return turn


async def write(host, title=STABLE, **fields):
    async with host.turn("Remember it.", session="s0", user="ann", trust="full") as turn:
        answer = await host.run_tool(turn.id, "memory_write", {"title": title, **fields})
        await turn.commit("Done.")
    await host.drain()
    return answer


async def write_many(host, titles, **fields):
    """Write memories in one turn."""
    async with host.turn("Remember it.", session="s0", user="ann", trust="full") as turn:
        for title in titles:
            await host.run_tool(turn.id, "memory_write", {"title": title, **fields})
        await turn.commit("Done.")
    await host.drain()


def others(*wanted):
    """Return the installed plugins but for the local memory and those that are wanted."""
    return sorted({point.name for point in entry_points(group="beaver_hooks")} - {"local", *wanted})


async def is_refused(call):
    """Return whether a tool or a command is refused to its caller; other errors go to callers who may use it."""
    try:
        await call
    except NotAllowed:
        return True
    except (EngineError, ValueError):
        return False
    return False


def shown(turn):
    return " ".join(message.text for message in turn.references)


# --- Opt-in -----------------------------------------------------------------------------------------------------


@pytest.mark.shows("003-013")
async def test_off_by_default(tmp_path, caplog):
    """A plugin that is only installed is disabled: no rule, tools, commands, recall, files or warnings."""
    events, config = (
        MemorySink(),
        parse_config(json.dumps({"memory": {"mode": "curated"}, "plugins": {"disabled": others("curated")}})),
    )
    with caplog.at_level(logging.WARNING):
        async with Host(entry_points=None, config=config, state_folder=tmp_path / "state", sinks=[events]) as host:
            turn = await run_turn(host)
            health = host.health()["local"]
            there = [name for name in ("plugins", "tools", "commands") if "local" in getattr(host, name)]
        files = [path for path in (tmp_path / "state" / "plugins" / "local").rglob("*") if path.is_file()]

    assert ("disabled", OFF) == (health.state, health.reason)
    assert ([], "", False, []) == (there, shown(turn), RULE in turn.system_prompt("Base."), files)
    assert ["plugin_turned_off"] == [each.name for each in events.events if each.plugin == "local"]
    assert [] == [record.getMessage() for record in caplog.records]


@pytest.mark.parametrize(("enabled", "state"), [(False, "disabled"), (True, "ok")])
def test_shown_by_the_command_line(tmp_path, enabled, state):
    """`beaver plugins` and `beaver doctor` show the plugin as on or off, and report no problem with either."""
    config = tmp_path / "config.json"
    section = {"enabled": enabled, "embedding": {"provider": "none"}}
    config.write_text(
        json.dumps(
            {
                "memory": {"mode": "curated", "local": section},
                "plugins": {"disabled": others("curated")},
                "host": {"stateFolder": str(tmp_path / "state")},
            }
        )
    )
    env = environment(BEAVER_CONFIG=config, HOME=tmp_path)

    def beaver(*words):
        ran = run_beaver(*words, "--json", cwd=tmp_path, env=env)
        return ran.json, ran.err

    listed, said = beaver("plugins")
    (found,) = [each for each in listed["plugins"] if each["name"] == "local"]
    examined, _ = beaver("doctor")
    levels = {each["level"] for each in examined["findings"] if each["subject"] == "plugin local"}

    assert (state, None if enabled else OFF, TOOLS if enabled else []) == (found["state"], found["why"], found["tools"])
    assert ("", {"ok"}) == (said, levels)


def test_importing_it_is_cheap():
    """Importing and describing the plugin imports neither the engine nor numpy."""
    heavy = ("numpy", "apsw", "Stemmer", "onnxruntime", "httpx", "beaver_memory.engine")
    code = (
        "import sys, beaver_hooks_local; plugin = beaver_hooks_local.make_plugin(); plugin.describe();"
        "assert plugin.provide_tools() and plugin.provide_commands();"
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)

    assert "[]" == done.stdout.strip()


def test_described():
    """The plugin describes itself with settings, a path and one short rule that is always the same bytes."""
    info = make_plugin().describe()

    assert (LocalSettings, "memory.local", (RULE,)) == (info.settings, info.settings_path, info.rules)
    assert len(RULE) < 300


# --- From end to end --------------------------------------------------------------------------------------------


@pytest.mark.shows("003-002", "003-017", "003-029", "003-039", "003-053", "003-126")
async def test_written_and_recalled(make_host):
    """A memory that the tool writes in one session is recalled in another, as a reference outside the system prompt."""
    async with make_host() as host:
        stored = await write(host)
        turn = await run_turn(host)
        health = str(host.health()["local"])
        kept = (await host.receipt(turn.id))["plugins"]["local"]

    assert ("stored", True, False, "ok") == (
        stored["outcome"],
        STABLE in shown(turn),
        STABLE in turn.system_prompt(),
        health,
    )
    assert ["1"] == list(kept["injected"])
    assert [{"gate": "recall", "verdict": "recall", "reason": "session_start"}] == [
        dict(each) for each in kept["decisions"]
    ]


@pytest.mark.shows("002-009")
async def test_tools(make_host):
    """The host offers the seven tools, which lead from search over timeline to whole memories."""
    async with make_host() as host:
        assert TOOLS == [tool.name for tool in host.tools["local"]]
        await write(host, narrative="Because main moves.")
        async with host.turn("?", session="s1", user="ann", trust="full") as turn:
            rows = (await host.run_tool(turn.id, "memory_search", {"query": "billing"}))["results"]
            around = (await host.run_tool(turn.id, "memory_timeline", {"anchor": rows[0]["id"]}))["results"]
            whole = (await host.run_tool(turn.id, "memory_get", {"ids": [around[0]["id"]]}))["observations"]
            await turn.commit("Done.")

    assert ["Because main moves."] == [each["narrative"] for each in whole]


async def test_commands(make_host):
    """The commands work in a host: why, pin, and forget with a second word."""
    context = CommandContext(session="s1", user="ann", trust="full")
    async with make_host() as host:
        await write(host)
        await run_turn(host)
        why = await host.run_command("local", "why", (), context)
        pinned = await host.run_command("local", "pin", ("1",), context)
        await host.run_command("local", "forget", ("1",), context)
        listed = await host.run_command("local", "list", (), context)
        await host.run_command("local", "forget", ("1", "yes"), context)
        turn = await run_turn(host)

    assert ("lexical" in why, pinned.startswith("1 is pinned"), " pinned: " in listed) == (True, True, True)
    assert "" == shown(turn)


@pytest.mark.shows("002-009")
@pytest.mark.parametrize("trust", list(Trust))
async def test_tools_and_commands_are_for_those_who_see_a_store(make_host, trust):
    """Tools and commands are offered and run at full, inner and familiar trust, and refused at public trust."""
    context = CommandContext(session="s1", user="ann", trust=trust)
    async with make_host() as host:
        names = [command.name for command in host.commands["local"]]
        offered = (
            *(tool.name for tool in host.offered_tools(context)["local"]),
            *(command.name for command in host.offered_commands(context)["local"]),
        )
        async with host.turn("?", session="s1", user="ann", trust=trust) as turn:
            tools = [await is_refused(host.run_tool(turn.id, name, {"query": "billing"})) for name in TOOLS]
        commands = [await is_refused(host.run_command("local", name, ["x"], context)) for name in names]

    allowed = trust is not Trust.PUBLIC
    assert ((*TOOLS, *names) if allowed else ()) == offered
    assert [not allowed] * len([*TOOLS, *names]) == [*tools, *commands]


async def test_the_rule(make_host):
    """The rule is the same in every turn while the plugin runs."""
    async with make_host() as host:
        before = (await run_turn(host)).system_prompt("Base.")
        await write(host)
        during = (await run_turn(host)).system_prompt("Base.")
        await host.unregister("local")
        after = (await run_turn(host)).system_prompt("Base.")

    assert (f"Base.\n\n{RULE}", f"Base.\n\n{RULE}", "Base.") == (before, during, after)


@pytest.mark.parametrize(
    ("given", "seen"), [({}, True), ({"user": "bob"}, False), ({"user": None}, False), ({"trust": "inner"}, False)]
)
async def test_who_sees_it(make_host, given, seen):
    """A recall shows a private memory to its user at full trust, and to no other turn."""
    async with make_host() as host:
        await write(host)
        assert seen == (STABLE in shown(await run_turn(host, **given)))


@pytest.mark.shows("003-089")
async def test_recalls_are_noted(make_host):
    """A memory that a turn was given has a time of last access once the plugin has stopped."""
    async with make_host() as host:
        await write(host)
        await run_turn(host)
    async with make_host(plugin := make_plugin()):
        sight = Visibility.of_turn(make_turn(user="ann", trust="full"), Reach())
        (found,) = plugin.memory.operations.engine.get([1], sight.filters(plugin.memory.clock.now()))

    assert found.last_accessed_at is not None


async def test_nothing_of_the_text_is_in_the_audit_trail(make_host):
    """Neither prompts nor memories are in audit events, receipts or the trace file."""
    events = MemorySink()
    async with make_host(sinks=[events]) as host:
        await write(host)
        turn = await run_turn(host)
        receipt = json.dumps(await host.receipt(turn.id), default=repr)

    told = repr([(each.name, each.facts) for each in events.events]) + receipt
    assert [] == [word for word in ("Billing", "billing", "stable", "branch") if word in told]


@pytest.mark.shows("002-022", "002-023", "002-127")
async def test_trace_file(make_host, tmp_path):
    """The trace file has a line for each step, and no content."""
    path = tmp_path / "trace.jsonl"
    async with make_host(traceFile=str(path)) as host:
        await write(host)
        await run_turn(host)

    text = path.read_text()
    events = [json.loads(line)["event"] for line in text.splitlines()]
    assert {"initializing_memory_store", "memory_embedding_configured", "memory_write", "recall_gate"} <= {*events}
    assert [] == [word for word in ("Billing", "billing", "stable", "ann") if word in text]


async def test_a_trace_that_cannot_be_written(make_host, tmp_path):
    """A trace file that cannot be written degrades the health, and recall goes on."""
    folder = tmp_path / "traces"
    folder.mkdir()
    (folder / "t.jsonl").symlink_to(tmp_path / "elsewhere")
    async with make_host(traceFile=str(folder / "t.jsonl")) as host:
        await write(host)
        turn = await run_turn(host)
        health = host.health()["local"]

    assert (True, "degraded", "trace_file_OSError") == (STABLE in shown(turn), health.state, health.category)


@pytest.mark.parametrize("room", [900, *campaign(2000, 1500)])
async def test_a_list_that_the_host_has_no_room_for(make_host, room):
    """Of a prompt index beyond the host's bound some pages are shown."""
    async with make_host(host=HostSettings(reference_tokens=room)) as host:
        for number in range(40):
            await write(host, f"Fact {number} of the garden: {chr(97 + number % 26) * 60} {number * 7919}")
        turn = await run_turn(host, "What is there about the garden?", trust="full")
        receipt = turn.receipt.plugins["local"]

    shown = [each for each in receipt.injected if each.startswith("index")]
    assert (True, True) == (0 < len(shown) < 6, receipt.tokens <= room)


async def test_a_small_budget_of_the_turn(make_host):
    """A turn with a small budget is given the part of the index that fits."""
    async with make_host() as host:
        for number in range(40):
            await write(host, f"Fact {number} of the garden: {chr(97 + number % 26) * 60} {number * 7919}")
        turn = await run_turn(host, "Tell me about the weather.", budget=400)
        receipt = turn.receipt.plugins["local"]

    assert ("index" in receipt.injected, receipt.tokens <= 400) == (True, True)


# --- When something breaks --------------------------------------------------------------------------------------


@pytest.mark.shows("002-017")
@pytest.mark.parametrize(
    ("section", "said"),
    [
        (
            {"databasePath": "memory.db"},
            "memory.db is damaged; move it (with its -wal and -shm files) away, or restore",
        ),
        (
            {"embedding": {"provider": "static", "dimensions": 512}},
            "memory.local.embedding.dimensions: must be 256 for `l2_supercat_256`",
        ),
    ],
)
async def test_why_it_does_not_start(make_host, tmp_path, section, said):
    """The error of a plugin that does not start names the file or setting and what to do; the file is left alone."""
    path = tmp_path / "memory.db"
    path.write_bytes(b"no database at all" * 1000)
    given = {name: str(path) if name == "databasePath" else value for name, value in section.items()}
    with pytest.raises(PluginUnavailable) as caught:
        await make_host(**given).open()

    assert said in caught.value.reason
    assert isinstance(caught.value.__cause__.__cause__, EngineError | ConfigurationError)
    assert b"no database at all" * 1000 == path.read_bytes()


async def test_a_model_that_is_not_installed(make_host):
    """Without the configured model a recall works by words, and the health says so while that model is configured."""
    async with make_host(embedding={"provider": "onnx"}) as host:
        await write(host)
        turn = await run_turn(host)
        health = host.health()["local"]

    assert (True, "degraded", "embedder_missing_model") == (STABLE in shown(turn), health.state, health.category)
    async with make_host() as host:
        await run_turn(host)
        assert "ok" == str(host.health()["local"])


@pytest.mark.shows("002-119")
async def test_a_key_that_is_not_set(make_host):
    """Without the configured key a recall works by words; the health says so, and an event names the variable."""
    events = MemorySink()
    embedding = {"provider": "openai", "model": "m", "dimensions": 8, "apiKeyEnv": "ACME_API_KEY"}
    async with make_host(Local(environment={}), embedding=embedding, sinks=[events]) as host:
        await write(host)
        turn = await run_turn(host)
        health = host.health()["local"]
    (told,) = [dict(each.facts) for each in events.events if each.name == "memory_embedder_unavailable"]

    assert (True, "degraded", "embedder_missing_key") == (STABLE in shown(turn), health.state, health.category)
    assert {"provider": "openai", "category": "missing_key", "variable": "ACME_API_KEY"} == told


@pytest.mark.shows("002-063", "002-110", "002-121", "003-111")
async def test_a_provider_that_is_down(make_host):
    """With a provider that is down a recall works by words in the same turn, the health says so, and no key leaks."""
    canary, events = make_canary(), MemorySink()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    section = {"provider": "openai-compatible", "model": "m", "dimensions": 8, "baseUrl": f"http://127.0.0.1:{port}"}
    async with make_host(embedding={**section, "apiKey": canary.reveal()}, sinks=[events]) as host:
        await write(host)
        turn = await run_turn(host)
        health = host.health()["local"]

    assert (True, "degraded", "embedding_unavailable") == (STABLE in shown(turn), health.state, health.category)
    assert "memory_recall_keyword_only" in {each.name for each in events.events}
    canary.assert_clean(repr(events.events), repr(health))


async def test_a_search_that_hangs(make_host):
    """A hanging search blocks neither the event loop nor other turns."""
    plugin, hang, entered = make_plugin(), threading.Event(), threading.Event()
    host = make_host(plugin, embedding={"provider": "none"})
    await host.open()
    try:
        await write(host)
        search = plugin.memory.operations.engine.search

        def hanging(query):
            if "slow" in query.text:
                entered.set()
                hang.wait(30)
            return search(query)

        plugin.memory.operations.engine.search = hanging
        async with asyncio.timeout(20), asyncio.TaskGroup() as group:
            slow = group.create_task(run_turn(host, "a slow question", session="slow"))
            await asyncio.to_thread(entered.wait, 10)
            quick = await run_turn(host)
            assert STABLE in shown(quick)
            hang.set()
        assert "" == shown(slow.result()) or STABLE in shown(slow.result())
    finally:
        hang.set()
        await host.close()


async def test_ask_before_it_is_open(tmp_path):
    """A turn before `start` or after `stop` raises an error that the memory is not open."""
    plugin = Local(environment={})
    report = RecordingReport()
    settings = LocalSettings(enabled=True, embedding=EmbeddingSettings(provider="none"))
    plugin.configure(Setup(settings=settings, state_folder=tmp_path, report=report))
    with pytest.raises(RuntimeNotOpen, match="is not open"):
        await plugin.before_prompt(make_turn(), report)
    await plugin.start()
    await plugin.before_prompt(make_turn(), report)
    await plugin.stop()
    with pytest.raises(RuntimeNotOpen):
        await plugin.before_prompt(make_turn(), report)
    await plugin.stop()


async def test_two_hosts_side_by_side(make_host):
    """Two hosts on one store see each other's memories at once."""
    async with make_host() as one, make_host() as other:
        await write(one)
        assert STABLE in shown(await run_turn(other))
        await write(other, "Billing is written in Rust.")
        assert "Rust" in shown(await run_turn(one, session="s2"))


@pytest.mark.parametrize("count", [20, *campaign(100)])
async def test_many_turns_at_once(make_host, count):
    """Concurrent turns are all answered."""
    async with make_host() as host:
        await write(host)
        turns = await asyncio.gather(*(run_turn(host, session=f"s{number}") for number in range(count)))

    assert [True] * count == [STABLE in shown(turn) for turn in turns]


@pytest.mark.shows("002-013", "002-044")
@pytest.mark.parametrize("tokens", [None, 700, *campaign(4500, 2000, 350, 60)])
async def test_the_event_tells_what_the_model_got_of_the_index(make_host, tokens):
    """The index event counts the rows that the model sees, whatever token bound the host has."""
    events = MemorySink()
    settings = {} if tokens is None else {"reference_tokens": tokens}
    host = make_host(sinks=[events], host=HostSettings(**settings), promptIndex={"limit": 500})
    async with host:
        await write_many(host, [MEETING.format(number) for number in range(120)], narrative="A longer text. " * 20)
        turn = await run_turn(host)
    told = [each.facts for each in events.events if (each.turn, each.name) == (turn.id, "memory_prompt_index_injected")]
    text = "".join(message.text for message in turn.references)
    rows = len(re.findall(r"^\| \[\d+\] private", text, re.MULTILINE))

    assert [rows] * (rows > 0) == [facts["rows"] for facts in told]
    assert [] == [each for each in turn.receipt.plugins["local"].clipped if each.what == "references"]
    # By default the list may take all that `promptIndex.maxTokens` lets it.
    assert tokens not in {None, 4500} or told[0]["tokens"] > 2950


@pytest.mark.shows("003-096")
async def test_the_formula_of_the_configuration_ranks(make_host):
    """Each configured formula gives a turn's memories its own scores."""
    clock = FrozenClock()
    async with make_host(Local(clock=clock)) as host:
        await write(host)
        await write(host, "The branch stable is protected.", pinned=True)
        await write(host, "Deployments happen on Mondays, from the branch that billing uses.", type="decision")
    scored = {}
    for formula in FORMULAS:
        async with make_host(
            Local(clock=FrozenClock()), ranking={"formula": formula}, recall={"minimumScore": 0}
        ) as host:
            scored[formula] = (await run_turn(host)).receipt.plugins["local"].candidates

    assert (len(FORMULAS), True) == (len({*scored.values()}), all(scored.values()))
