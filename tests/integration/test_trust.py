"""Who gets what of memory, in a real host with the real curated files and a memory that watches what it is asked."""

import logging
import time

import pytest

from beaver_hooks import Host
from beaver_hooks.audit.memory_sink import MemorySink
from beaver_hooks.config import Config
from beaver_hooks.config.model import HostSettings
from beaver_hooks.receipts.receipts import Decision
from beaver_hooks_curated import CuratedError
from beaver_hostspecs import (
    Command,
    CommandContext,
    Contribution,
    InvalidTurn,
    NotAllowed,
    Reference,
    Tool,
    Trust,
    hookimpl,
)
from beaver_hostspecs.testing import FaultError, RecordingPlugin

NOTES, PROFILE = "the notes of the owner", "the profile of the owner"


@pytest.fixture
def folder(tmp_path):
    """A state folder with the owner's two files."""
    kept = tmp_path / ".beaver" / "plugins" / "curated"
    kept.mkdir(parents=True, mode=0o700)
    (kept / "MEMORY.md").write_text(NOTES)
    (kept / "USER.md").write_text(PROFILE)
    return tmp_path / ".beaver"


def curated(folder, **more):
    return Host(entry_points=["curated"], state_folder=folder, environment={}, **more)


def files(folder):
    kept = folder / "plugins" / "curated"
    return (kept / "MEMORY.md").read_text(), (kept / "USER.md").read_text()


@pytest.mark.parametrize("trust", list(Trust))
async def test_the_curated_block_is_for_those_it_belongs_to(folder, trust):
    """The system prompt holds the owner's files at full and inner trust, and at no other."""
    async with curated(folder) as host, host.turn("Hello.", session="s", user="stranger", trust=trust) as turn:
        system = turn.system_prompt()
    seen = trust in (Trust.FULL, Trust.INNER)
    assert (seen, seen) == (NOTES in system, PROFILE in system)


@pytest.mark.parametrize("trust", list(Trust))
async def test_the_curated_tool_writes_for_the_owner_alone(folder, trust):
    """Below full trust the tool is not offered, is refused when it is called, and the files stay as they are."""
    arguments = {"target": "user", "action": "add", "content": "a sentence of a stranger"}
    context = CommandContext(session="s", user="stranger", trust=trust)
    async with curated(folder) as host:
        offered = [tool.name for tool in host.offered_tools(context)["curated"]]
        refused = []
        async with host.turn("Hello.", session="s", user="stranger", trust=trust) as turn:
            for call in (
                lambda: host.run_tool(turn.id, "memory", arguments),
                lambda: host.use_tool("memory", arguments, session="s", user="stranger", trust=trust),
            ):
                try:
                    await call()
                except NotAllowed as error:
                    refused.append(error.plugin)
    full = trust is Trust.FULL
    written = "a sentence of a stranger" in files(folder)[1]
    assert (["memory"] if full else [], [] if full else ["curated"] * 2, full) == (offered, refused, written)


READ, WRITE = ("show", "history", "pending"), ("undo", "approve", "reject", "forget-history")


@pytest.mark.parametrize("trust", list(Trust))
async def test_the_curated_commands_are_for_those_they_belong_to(folder, trust):
    """Reading commands want inner trust, changing ones full trust; the others are neither listed nor run."""
    context = CommandContext(session="s", user="stranger", trust=trust)
    allowed = {Trust.FULL: {*READ, *WRITE}, Trust.INNER: {*READ}}.get(trust, set())
    async with curated(folder) as host:
        offered = {command.name for command in host.offered_commands(context)["curated"]}
        refused = set()
        for name in (*READ, *WRITE):
            try:
                await host.run_command("curated", name, ["x"], context)
            except NotAllowed:
                refused.add(name)
            except CuratedError:  # its words are wrong, which it says only to those who may use it
                continue
    assert (allowed, {*READ, *WRITE} - allowed) == (offered, refused)


async def test_what_trust_leaves_out_is_in_the_receipt_and_logged_once(folder, caplog):
    """Each turn's receipt names the parts that trust leaves out; the log names the remedy once in a host's life."""
    caplog.set_level(logging.WARNING)
    async with curated(folder) as host:
        decisions = []
        for number in range(3):
            async with host.turn("Hello.", session="s", trust="public") as turn:
                await turn.commit(f"Answer {number}.")
            decisions.append(turn.receipt.plugins["curated"].decisions)
    said = [record.getMessage() for record in caplog.records if "memory_left_out" in record.getMessage()]
    expected = (
        Decision(gate="trust", verdict="not_offered", reason="memory"),
        Decision(gate="trust", verdict="left_out", reason="MEMORY.md"),
        Decision(gate="trust", verdict="left_out", reason="USER.md"),
    )
    assert ([expected] * 3, 1, True) == (decisions, len(said), "use trust `full`" in said[0])


async def test_a_withheld_tool_of_a_plugin_that_reports_nothing_is_logged_once(tmp_path, caplog):
    """The host itself names the remedy for a tool that trust leaves out."""
    caplog.set_level(logging.WARNING)
    plugin = Offering(lambda caller: caller.trust is Trust.FULL)
    async with Host({"p": plugin}, state_folder=tmp_path / "s", environment={}) as host:
        for number in range(2):
            async with host.turn("Hello.", session="s", trust="public") as turn:
                await turn.commit(f"Answer {number}.")
    said = [record.getMessage() for record in caplog.records if "memory_left_out" in record.getMessage()]
    decisions = (Decision(gate="trust", verdict="not_offered", reason="look"),)
    assert (1, True, decisions) == (len(said), "plugin=p trust=public" in said[0], turn.receipt.plugins["p"].decisions)


async def test_full_trust_leaves_nothing_out(folder, caplog):
    """The owner's turn has no such decision, and nothing is logged."""
    caplog.set_level(logging.WARNING)
    async with curated(folder) as host, host.turn("Hello.", session="s", trust="full") as turn:
        pass
    assert ((), []) == (turn.receipt.plugins["curated"].decisions, caplog.records)


@pytest.mark.parametrize("blank", ["", " ", "\t\n"])
async def test_a_blank_user_is_refused_everywhere(folder, blank):
    """No turn, tool, command or switch takes a blank user for every user."""
    async with curated(folder) as host:
        for call in (
            lambda: host.open_turn("Hello.", session="s", user=blank),
            lambda: host.use_tool("memory", {}, session="s", user=blank, trust="full"),
            lambda: host.switch_memory(on=False, user=blank),
        ):
            with pytest.raises(InvalidTurn, match="user must be a str that is not blank"):
                await call()
        with pytest.raises(InvalidTurn, match="user must be a str that is not blank"):
            host.is_memory_off(user=blank)
    with pytest.raises(ValueError, match="user must be a str that is not blank"):
        CommandContext(user=blank)


class Offering(RecordingPlugin):
    """Offers a tool and a command with the given `allows`."""

    def __init__(self, allows):
        super().__init__(Contribution(blocks=["A block."], references=[Reference(text="A reference.")]))
        self.allows = allows
        self.ran = []

    @hookimpl
    def provide_tools(self):
        return [Tool(name="look", description="", parameters={}, run=self._tool, allows=self.allows)]

    @hookimpl
    def provide_commands(self):
        return [Command(name="show", summary="", run=self._command, allows=self.allows)]

    async def _tool(self, arguments, turn, report):
        self.ran.append("tool")
        return "looked"

    async def _command(self, words, context, report):
        self.ran.append("command")
        return "shown"


def raising(caller):
    raise FaultError("no answer")


@pytest.mark.parametrize(
    "allows",
    [
        pytest.param(raising, id="raises"),
        pytest.param(lambda caller: None, id="nothing"),
        pytest.param(lambda caller: 1, id="truthy"),
    ],
)
async def test_a_plugin_that_does_not_say_yes_allows_nothing(tmp_path, allows):
    """Any answer but `True` refuses the caller, and an exception of `allows` is in the plugin's health."""
    plugin = Offering(allows)
    async with Host({"p": plugin}, state_folder=tmp_path / "s", environment={}) as host:
        async with host.turn("Hello.", session="s", trust="full") as turn:
            with pytest.raises(NotAllowed):
                await host.run_tool(turn.id, "look", {})
        with pytest.raises(NotAllowed):
            await host.run_command("p", "show", [], CommandContext(trust=Trust.FULL))
        faults = dict(host.health()["p"].faults)
    wanted = {"tool:look": "raised", "command:show": "raised"} if allows is raising else {}
    assert ([], wanted) == (plugin.ran, faults)


async def test_a_plugin_that_does_not_answer_at_once_allows_nothing(tmp_path):
    """A slow `allows` counts as a refusal, is a fault in the plugin's health, and is not called again."""
    asked = []

    def slow(caller):
        asked.append(caller)
        time.sleep(0.3)
        return True

    plugin, seen = Offering(slow), []
    config = Config(host=HostSettings(blocked_after_seconds=0.2))
    async with Host({"p": plugin}, config=config, state_folder=tmp_path / "s", environment={}) as host:
        for number in range(3):
            async with host.turn("Hello.", session="s", trust="full") as turn:
                seen.append(host.offered_tools(turn.turn)["p"])
                with pytest.raises(NotAllowed):
                    await host.run_tool(turn.id, "look", {})
                await turn.commit(f"Answer {number}.")
        faults = host.health()["p"].faults

    assert ([()] * 3, 1, [], "blocked") == (seen, len(asked), plugin.ran, faults["tool:look"])


async def off_and(tmp_path, **switched):
    """Return the parts of memory that a user in a session gets after a switch, and the plugin."""
    plugin = Offering(lambda caller: True)
    who = {"session": "s", "user": "ann"}
    async with Host({"p": plugin}, state_folder=tmp_path / "s", environment={}) as host:
        await host.switch_memory(on=False, **switched)
    async with Host({"p": plugin}, state_folder=tmp_path / "s", environment={}) as host:  # it outlives the host
        context = CommandContext(**who, trust=Trust.FULL)
        async with host.turn("Hello.", **who, trust="full") as turn:
            refused = 0
            for call in (
                lambda: host.run_tool(turn.id, "look", {}),
                lambda: host.use_tool("look", {}, **who, trust="full"),
                lambda: host.run_command("p", "show", [], context),
            ):
                try:
                    await call()
                except NotAllowed:
                    refused += 1
            await turn.tool_result(tool="t", call_id="c", output="x")
            await turn.commit("An answer.")
        await host.drain()
        offered = host.offered_tools(context), host.offered_commands(context)
        hooks = [call.hook for call in plugin.calls if call.hook in ("before_prompt", "on_tool_result", "after_prompt")]
        return turn, refused, offered, hooks, host.is_memory_off(**who)


@pytest.mark.parametrize("switched", [{"session": "s", "user": "ann"}, {"user": "ann"}], ids=["session", "user"])
async def test_off_leaves_nothing_on(tmp_path, switched):
    """Memory that is off calls no hook, offers, shows and runs nothing, and the receipt gives the reason."""
    turn, refused, offered, hooks, off = await off_and(tmp_path, **switched)
    decision = Decision(gate="memory", verdict="off", reason="memory is off for this session")
    assert ("", (), 3, ({"p": ()}, {"p": ()}), [], True, (decision,)) == (
        turn.system_prompt(), turn.references, refused, offered, hooks, off, turn.receipt.plugins["p"].decisions,
    )  # fmt: skip


async def test_off_for_another_session_or_user_changes_nothing(tmp_path):
    """Memory stays on for a user and session when another user or session has switched it off."""
    turn, refused, _, hooks, off = await off_and(tmp_path, session="s", user="bob")
    expected = ("A block.", 0, ["before_prompt", "on_tool_result", "after_prompt"], False)
    assert expected == (turn.system_prompt(), refused, hooks, off)


async def test_switching_off_in_the_middle_of_a_turn(tmp_path):
    """After memory is switched off in a turn, no tool runs and no answer is learned; its recall was already shown."""
    plugin, sink = Offering(lambda caller: True), MemorySink()
    async with Host({"p": plugin}, state_folder=tmp_path / "s", environment={}, sinks=[sink]) as host:
        async with host.turn("Hello.", session="s", trust="full") as turn:
            await host.switch_memory(on=False, session="s")
            with pytest.raises(NotAllowed, match="memory on"):
                await host.run_tool(turn.id, "look", {})
            await turn.commit("An answer.")
        await host.drain()
        await host.switch_memory(on=True, session="s")
        async with host.turn("Once more.", session="s", trust="full") as again:
            pass
    switched = [dict(event.facts) for event in sink.events if event.name == "memory_switched"]
    hooks = [call.hook for call in plugin.calls if call.hook in ("before_prompt", "after_prompt")]
    assert (["before_prompt", "before_prompt"], "A block.", [False, True]) == (
        hooks, again.system_prompt(), [each["on"] for each in switched],
    )  # fmt: skip


async def test_a_switch_that_cannot_be_read_is_off_and_the_host_says_so(tmp_path):
    """A damaged switch file turns memory off for every turn, and the host's health names it until it is whole."""
    folder = tmp_path / "s"
    plugin = Offering(lambda caller: True)
    async with Host({"p": plugin}, state_folder=folder, environment={}) as host:
        (folder / "memory-off.json").write_text("damaged")
        async with host.turn("Hello.", session="s", trust="full") as turn:
            pass
        during = host.health()["host"]
        (folder / "memory-off.json").unlink()
        async with host.turn("Hello again.", session="s", trust="full") as again:
            pass
        after = host.health()["host"]
    assert ("", {"memory_switch": "unreadable"}, "A block.", "ok") == (
        turn.system_prompt(), dict(during.faults), again.system_prompt(), after.state,
    )  # fmt: skip
