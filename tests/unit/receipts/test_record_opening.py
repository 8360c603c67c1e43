"""A trail that cannot be opened or written is reported loudly and stops no turn."""

import asyncio
import logging
import threading
from types import SimpleNamespace

import apsw
import pytest

from beaver_hooks import Host
from beaver_hooks.audit.memory_sink import MemorySink
from beaver_hooks.audit.trail import Trail
from beaver_hooks.log import make_log
from beaver_hooks.receipts.factory import open_recorder
from beaver_hooks.receipts.health import Health
from beaver_hooks.receipts.recorder import HOST
from beaver_hostspecs import AuditUnavailable, Contribution
from beaver_hostspecs.testing import FrozenClock, RecordingPlugin


class Recalling:
    """Recalls, and wants no folder."""

    def __init__(self, plugin):
        self.before_prompt = plugin.before_prompt
        self.after_prompt = plugin.after_prompt


class Ear(logging.Handler):
    """Collects the lines of the log from any thread, and lets a test wait for one."""

    def __init__(self):
        super().__init__()
        self.lines = []
        self.news = threading.Condition()

    def emit(self, record):
        with self.news:
            self.lines.append((record.levelname, record.getMessage()))
            self.news.notify_all()

    def wait_for(self, text):
        with self.news:
            assert self.news.wait_for(lambda: any(text in line for _, line in self.lines), timeout=20)

    def errors(self):
        return [line for level, line in self.lines if level == "ERROR"]


@pytest.fixture
def ear():
    ear, logger = Ear(), logging.getLogger("beaver_hooks")
    logger.addHandler(ear)
    yield ear
    logger.removeHandler(ear)


def a_file(folder):
    """Put a file where the state folder should be."""
    (folder / "state").write_text("mine")
    return folder / "state"


def below_a_file(folder):
    """Name a folder below a file."""
    return a_file(folder) / "below"


def a_link(folder):
    """Put a link where the state folder should be."""
    (folder / "state").symlink_to(folder)
    return folder / "state"


def garbage(folder):
    """Put something else where the database should be."""
    (folder / "state").mkdir()
    (folder / "state" / "host.db").write_bytes(b"This is no database at all. " * 100)
    return folder / "state"


def no_key(folder):
    """Delete the key of a trail with records."""
    record = reopen(folder / "state")
    record.event("something")
    record.trail.close()
    (folder / "state" / "audit.key").unlink()
    return folder / "state"


def read_only(folder):
    """Name a place where no user can write, not even root."""
    return type(folder)("/proc/beaver")


@pytest.mark.shows("001-088")
@pytest.mark.parametrize("obstacle", [a_file, below_a_file, a_link, garbage, no_key, read_only])
async def test_a_trail_that_cannot_be_opened(tmp_path, ear, obstacle):
    """The host still opens and runs turns; its health and its log say that the trail is unavailable."""
    plugin, sink = RecordingPlugin(Contribution(blocks=("Be brief.",))), MemorySink()
    state = obstacle(tmp_path)

    async with Host({"plain": Recalling(plugin)}, state_folder=state, sinks=[sink]) as host:
        async with host.turn("hello", session="s") as turn:
            prompt = turn.system_prompt()
            await turn.commit("hi")
        await host.drain()
        health, states = host.health()[HOST], turn.receipt.state
        with pytest.raises(AuditUnavailable) as caught:
            await host.receipt(turn.id)

    assert ("Be brief." in prompt, states, turn.receipt.session[:2]) == (True, "committed", "h:")
    assert (health.state, dict(health.faults), health.since is None) == ("degraded", {"audit": "unavailable"}, False)
    assert [line.partition(" reason=")[0] for line in ear.errors()] == ["event=beaver_hooks.audit_unavailable"]
    assert str(caught.value) == "the audit trail could not be opened; the host's health and log show why"
    assert [(event.plugin, event.facts["category"]) for event in sink.named("plugin_degraded")] == [
        (HOST, "unavailable")
    ]


@pytest.mark.parametrize("error", [ImportError("no apsw"), OSError("no"), ValueError("embedded null byte")])
async def test_a_trail_that_raises_something_else(tmp_path, monkeypatch, ear, error):
    """The host opens without a usable database engine or folder, and its health and log say so."""

    def broken(*_, **__):
        raise error

    monkeypatch.setattr(Trail, "open", broken)
    async with Host(state_folder=tmp_path / "state") as host:
        health = host.health()[HOST]

    assert dict(health.faults) == {"audit": "unavailable"}
    assert ear.errors() == [f"event=beaver_hooks.audit_unavailable reason={type(error).__name__}"]


@pytest.mark.shows("001-088")
async def test_a_database_that_is_deleted(tmp_path, ear):
    """Turns go on without the deleted trail; health, log and other sinks report its loss and the new one."""
    state, sink = tmp_path / "state", MemorySink()
    async with Host({"plain": RecordingPlugin()}, state_folder=state, sinks=[sink]) as host:
        host.trail.flush()
        for name in ("host.db", "host.db-wal", "host.db-shm"):
            (state / name).unlink(missing_ok=True)
        async with host.turn("hello", session="s") as turn:
            await turn.commit("hi")
        await asyncio.to_thread(ear.wait_for, "audit_written_again")
        await host.drain()
        health = host.health()[HOST]
        receipt = await host.receipt(turn.id)
        names = [event.name for event in host.trail.tail(100)]

    assert ear.errors() == ["event=beaver_hooks.audit_not_written category=missing"]
    assert [event.name for event in sink.events if event.plugin == HOST] == ["plugin_degraded", "plugin_recovered"]
    assert (health.state, health.category, receipt["state"]) == ("ok", "missing", "committed")
    assert {"audit_restarted", "turn_committed", "plugin_degraded"} <= set(names)


def sql(state, statement, *bindings):
    connection = apsw.Connection(str(state / "host.db"))
    connection.execute(statement, bindings)
    connection.close()


def reopen(state, *sinks):
    options = SimpleNamespace(state_folder=state, clock=FrozenClock(), sinks=sinks)
    return open_recorder(options, make_log())


@pytest.mark.parametrize(
    "body",
    [
        '{"since": "yesterday"}', '{"since": {}}', '{"faults": 3}', '{"faults": {"x": 3}}', '{"state": []}',
        '{"state": "gone"}', '{"consecutive_failures": "many"}', '{"reason": []}', "[]", "{", '"x"',
    ],
)  # fmt: skip
def test_health_that_cannot_be_read(tmp_path, body):
    """Damaged health in the database does not keep a host from opening; good entries stay."""
    state = tmp_path / "state"
    record = reopen(state)
    record.degraded("good", source="disk", category="full")
    record.trail.close()
    sql(state, "INSERT INTO health VALUES ('odd', ?, 'now')", body)

    again = reopen(state)
    odd, good = again.health["odd"], again.health["good"]
    again.trail.close()

    assert odd == Health()
    assert (good.state, dict(good.faults)) == ("degraded", {"disk": "full"})


def test_health_that_is_no_text(tmp_path, ear):
    """Bytes that are no text, in the place of a text, keep no host from opening either."""
    state = tmp_path / "state"
    reopen(state).trail.close()
    sql(state, "INSERT INTO health VALUES ('odd', CAST(? AS TEXT), 'now')", b"\xff")

    again = reopen(state)
    again.trail.close()

    assert again.health["odd"] == Health()
    assert [line.partition(" reason=")[0] for _, line in ear.lines] == ["event=beaver_hooks.health_unreadable"]


def test_a_health_table_that_cannot_be_read(tmp_path, monkeypatch, ear):
    """With unreadable stored health every plugin begins anew, and the log says so."""

    def unreadable(_, **__):
        raise AuditUnavailable("no luck")

    monkeypatch.setattr(Trail, "health", unreadable)
    record = reopen(tmp_path / "state")
    record.trail.close()

    assert record.health["p"] == Health()
    assert ear.lines == [("WARNING", 'event=beaver_hooks.health_unreadable reason="no luck"')]


def test_what_the_host_could_not_do_is_over_with_its_process(tmp_path):
    """A full queue of an earlier process is none of this one, and that it is over is an event."""
    first = reopen(tmp_path / "state")
    first.degraded(HOST, source="queue", category="queue_full")
    first.degraded("p", source="queue", category="theirs")
    first.trail.close()
    sink = MemorySink()
    second = reopen(tmp_path / "state", sink)
    second.trail.close()

    assert (second.health[HOST].state, second.health["p"].state) == ("ok", "degraded")
    assert [(event.name, event.plugin, dict(event.facts)) for event in sink.events] == [
        ("plugin_recovered", HOST, {"source": "queue"})
    ]


def test_ids_without_a_key(tmp_path):
    """A host that has nowhere to keep a key still shows no id; lone surrogates are hashed like anything else."""
    (tmp_path / "state").write_text("in the way")
    one, two = (reopen(tmp_path / "state").identify for _ in range(2))

    assert one("ada") == one("ada") != one("bob")
    assert one("ada") != two("ada")
    assert [len(one(value)) for value in ("", "ada", "\ud800")] == [26, 26, 26]
