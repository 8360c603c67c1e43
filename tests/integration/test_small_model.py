"""The small model that a configuration names, over a real connection: lent to plugins, and no key in what it leaves."""

import asyncio
import json
import traceback

import attrs
import pytest
from integration.openai_server import Reply, body, completion, serve, status, whole

from beaver_hooks import Host
from beaver_hooks.agent.factory import EngineLoader
from beaver_hooks.agent.loop import AgentLoop
from beaver_hooks.audit.reader import TrailReader
from beaver_hooks.config import config_schema, parse_config, structure
from beaver_hooks.config.provider import SmallModelSettings
from beaver_hooks.small_model import MOST_BYTES, SmallModelFailed
from beaver_hooks_local import make_plugin
from beaver_hooks_local import plugin as plugin_module
from beaver_hooks_local.plugin import CAPTURE_SECONDS, MODEL_SECONDS
from beaver_hooks_local.settings import CaptureSettings, LocalSettings
from beaver_hostspecs import CommandContext, ConfigurationError, Services, Setup
from beaver_hostspecs.testing import RecordingPlugin

KEY = "sk-canary-4711-small"
SISTER = "My sister Anna lives in Lisbon."


def section(server, **more):
    return {"baseUrl": server.base_url, "model": "small", "apiKey": {"env": "SMALL_KEY"}, "timeoutSeconds": 20, **more}


def host_of(server, folder, plugin, services=None, **more):
    config = parse_config(json.dumps({"host": {"smallModel": section(server, **more)}}), environment={"SMALL_KEY": KEY})
    return Host({"p": plugin}, config=config, state_folder=folder, services=services)


class Lent(RecordingPlugin):
    """Keeps the small model that it is given."""

    def answer_now(self, call):
        if call.hook == "configure":
            self.model = call.arguments["setup"].services.small_model
        return super().answer_now(call)


async def test_a_plugin_asks_it(tmp_path):
    """The endpoint gets the prompt with the credential, and the plugin gets the answer."""
    plugin = Lent()
    async with serve(whole("Noted.")) as server, host_of(server, tmp_path, plugin):
        answer = await plugin.model.complete("Extract: \ud800 hi", max_tokens=50)

    (request,) = server.requests
    assert "Noted." == answer
    assert ("POST", "/v1/chat/completions") == (request.method, request.path)
    asked = [{"role": "user", "content": "Extract: ? hi"}]
    assert {"model": "small", "messages": asked, "max_tokens": 50} == request.json
    assert f"Bearer {KEY}" == request.headers["authorization"]


HUGE = Reply(headers={"Content-Type": "application/json"}, parts=(b" " * (MOST_BYTES + 1),))


@pytest.mark.parametrize(
    ("reply", "category", "code"),
    [
        (status(401, f"the key {KEY} is wrong"), "unauthorised", 401),
        (status(404, "no such model"), "not_found", 404),
        (status(429, "busy"), "rate_limited", 429),
        (status(500, KEY), "http_error", 500),
        (body({"choices": []}), "malformed", 200),
        (body([]), "malformed", 200),
        (body(completion(None)), "malformed", 200),
        (Reply(parts=(b"no JSON",)), "malformed", 200),
        (HUGE, "too_large", 200),
        (Reply(parts=(b"{",), end="hang"), "timeout", None),
        (Reply(end="reset"), "connection", None),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_a_failure(tmp_path, reply, category, code):
    """Each failure is an error and an audit event with its category, and neither shows the credential."""
    plugin, events = Lent(), []
    sink = type("Sink", (), {"append": lambda _, event: events.append(event)})()
    seconds = 0.2 if category == "timeout" else 20
    async with serve(reply) as server:
        config = {"host": {"smallModel": section(server, timeoutSeconds=seconds)}}
        made = parse_config(json.dumps(config), environment={"SMALL_KEY": KEY})
        async with Host({"p": plugin}, config=made, state_folder=tmp_path, sinks=[sink]):
            with pytest.raises(SmallModelFailed) as caught:
                await plugin.model.complete("Extract.", max_tokens=50)

    told = [dict(each.facts) for each in events if each.name == "small_model_failed"]
    assert (category, code) == (caught.value.category, caught.value.status)
    assert [{"category": category, "status": code}] == told
    shown = "".join(traceback.TracebackException.from_exception(caught.value).format())
    assert KEY not in f"{shown}{caught.value!r}{events}"


async def test_a_program_lends_its_own(tmp_path):
    """A small model that the program gives is lent in place of the configured one."""
    plugin, model = Lent(), object()
    async with serve() as server, host_of(server, tmp_path, plugin, Services(small_model=model)):
        assert plugin.model is model
    assert 0 == server.connections


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"model": "m"}, "host.smallModel.baseUrl: is missing"),
        ({"baseUrl": "http://127.0.0.1/v1"}, "host.smallModel.model: is missing"),
        ({"baseUrl": "ftp://127.0.0.1/v1", "model": "m"}, "host.smallModel.baseUrl: must be an http or https URL"),
        ({"baseUrl": "http://example.com/v1", "model": "m"}, "host.smallModel: has a `baseUrl` with plain http"),
    ],
)
def test_wrong_settings(given, problem):
    """A section that cannot work is refused, with the field that is wrong."""
    with pytest.raises(ConfigurationError) as caught:
        structure(SmallModelSettings, given, "host.smallModel", environment={})
    assert str(caught.value).startswith(problem)


def test_plain_http_may_be_allowed():
    """A setting allows plain http to another machine, and the schema knows every setting."""
    given = {"baseUrl": "http://example.com/v1", "model": "m", "allowInsecureHttp": True}
    assert structure(SmallModelSettings, given, "x", environment={}) == SmallModelSettings(
        base_url="http://example.com/v1", model="m", allow_insecure_http=True
    )
    text = json.dumps(config_schema({}))
    assert '"smallModel"' in text
    assert len(attrs.fields(SmallModelSettings)) == 5


async def test_the_agent_captures_with_it(tmp_path):
    """The agent of a configuration file asks the model what to remember, and the credential is in no file."""
    found = {"memories": [{"kind": "fact", "text": SISTER, "confidence": 0.9, "source": 0}]}
    local = {"enabled": True, "embedding": {"provider": "none"}, "capture": {"extractor": "model"}}
    memory, disabled = {"mode": "curated", "local": local}, {"disabled": ["tally", "gateway"]}
    config = tmp_path / "config.json"
    async with serve(whole(json.dumps(found))) as server:
        host = {"smallModel": section(server), "stateFolder": "state"}
        config.write_text(json.dumps({"memory": memory, "plugins": disabled, "host": host}))
        async with await EngineLoader(config, environment={"SMALL_KEY": KEY}).load() as engine:
            await AgentLoop(engine).run(f"Remember that {SISTER}")
            await engine.host.drain()
            listed = await engine.host.run_command("local", "list", [], CommandContext(trust="full"))

    files = [each for each in tmp_path.rglob("*") if each.is_file()]
    assert (1, True) == (len(server.requests), SISTER in listed)
    assert files
    assert [] == [each.name for each in files if KEY.encode() in each.read_bytes()]


HANG = Reply(parts=(b"{",), end="hang")


async def test_a_cancelled_call_is_a_timeout(tmp_path):
    """A caller that gives up before the endpoint's own time is over leaves the event of a timeout."""
    plugin, events = Lent(), []
    sink = type("Sink", (), {"append": lambda _, event: events.append(event)})()
    async with serve(HANG) as server:
        made = parse_config(json.dumps({"host": {"smallModel": section(server)}}), environment={"SMALL_KEY": KEY})
        async with Host({"p": plugin}, config=made, state_folder=tmp_path, sinks=[sink]):
            call = asyncio.create_task(plugin.model.complete("Extract.", max_tokens=50))
            await server.arrived.wait()
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            await server.gone.wait()

    told = [dict(each.facts) for each in events if each.name == "small_model_failed"]
    assert [{"category": "timeout", "status": None}] == told


def test_the_defaults_end_a_turn_soon(tmp_path):
    """The endpoint gives up before the plugin, and the plugin before its hook: each says why in time."""
    plugin, settings = make_plugin(), LocalSettings(enabled=True, capture=CaptureSettings(extractor="model"))
    setup = Setup(
        settings=settings,
        state_folder=tmp_path,
        person_folder=tmp_path,
        services=Services(small_model=object()),
        report=None,
    )
    deadlines = plugin.configure(setup)
    endpoint = SmallModelSettings(base_url="http://127.0.0.1/v1", model="m").timeout_seconds
    asked = settings.capture.model_seconds
    assert endpoint < asked <= 8 < deadlines.after_prompt
    assert MODEL_SECONDS < CAPTURE_SECONDS < deadlines.stop


@pytest.fixture
def hanging(tmp_path):
    """Runs prompts in an agent whose small model never answers; returns the events of the trail."""

    async def run(server, *prompts, **more):
        local = {"enabled": True, "embedding": {"provider": "none"}, "capture": {"extractor": "model"}}
        host = {"smallModel": section(server, **more), "stateFolder": "state"}
        config = tmp_path / "config.json"
        config.write_text(
            json.dumps(
                {"memory": {"mode": "curated", "local": local}, "plugins": {"disabled": ["gateway"]}, "host": host}
            )
        )
        async with await EngineLoader(config, environment={"SMALL_KEY": KEY}).load() as engine:
            for prompt in prompts:
                await AgentLoop(engine).run(prompt)
                await engine.host.drain()
        return TrailReader(tmp_path / "state").tail(100)

    return run


def decided(folder):
    """Return why rules captured in each turn, the oldest first."""
    reader = TrailReader(folder)
    parts = [reader.receipt(each)["plugins"]["local"] for each in reversed(reader.recorded_turns(9))]
    found = [[each["reason"] for each in part["decisions"] if each["gate"] == "capture"] for part in parts]
    return [reason for each in found for reason in each]


async def test_a_model_that_hangs_is_asked_once(hanging, tmp_path):
    """Rules answer in place of a model that hangs, and the next turn does not ask it; both receipts say so."""
    async with serve(HANG, HANG) as server:
        events = await hanging(server, f"Remember that {SISTER}", "Remember that my desk is here.", timeoutSeconds=0.1)

    told = [dict(each.facts) for each in events if each.name == "small_model_failed"]
    assert (1, [{"category": "timeout", "status": None}]) == (len(server.requests), told)
    assert ["model_failed:timeout", "model_paused:timeout"] == decided(tmp_path / "state")


async def test_a_model_that_hangs_while_the_host_closes(hanging, monkeypatch, capfd):
    """A statement that waits is captured by rules within the time of closing; the event says so, and nothing is lost."""
    monkeypatch.setattr(plugin_module, "MODEL_SECONDS", 0.05)
    async with serve(HANG) as server:
        events = await hanging(server, SISTER)

    assert 1 == len(server.requests)
    (captured,) = (dict(each.facts) for each in events if each.name == "memory_captured")
    assert {
        "outcomes": ["stored"],
        "memories": [1],
        "reasons": ["no_candidate"],
        "fallback": "model_failed:timeout",
    } == {name: fact for name, fact in captured.items() if name != "turns"}
    names = {each.name for each in events}
    assert set() == names & {"memory_capture_failed", "memory_stop_incomplete", "memory_turns_postponed"}
    assert "small_model_failed" in names
    assert "audit_lost" not in capfd.readouterr().err
