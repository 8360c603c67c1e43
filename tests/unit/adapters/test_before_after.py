import logging
import threading

import pytest

from beaver_hooks import Host, SyncHost
from beaver_hooks.adapters import before_after
from beaver_hooks.adapters.before_after import BeforeAfter
from beaver_hostspecs import Contribution, DropReason, HostMisused, PluginInfo, Reference, UnknownTurn
from beaver_hostspecs.testing import Fault, FaultError, FaultPlugin, RecordingPlugin

RULED = PluginInfo(version="0", contract="1.0", rules=("Be careful.",))
RECALL = Contribution(blocks=("Trusted.",), references=[Reference(text="On Thursday.", id="r1")])


@pytest.fixture
def plugin():
    return RecordingPlugin(RECALL, info=RULED)


@pytest.fixture
def host(plugin, tmp_path):
    with SyncHost({"p": plugin}, state_folder=tmp_path) as host:
        yield host


def calls(plugin, hook, argument):
    return [call.arguments[argument] for call in plugin.calls_of(hook)]


def test_a_turn(host, plugin):
    """`before` returns system text, references and messages, and ignores further arguments of a framework."""
    memory = BeforeAfter(host, trust="full")
    history = [{"role": "user", "content": [{"type": "text", "text": "Hello."}, "odd"]}, {"role": "assistant"}]

    given = memory.before("When?", session="s", user="u", history=history, model="m", platform="cli")
    memory.tool(given.turn_id, "calendar", output="Thursday", arguments={"a": 1}, call_id="c", extra=1)
    memory.after(given.turn_id, "On Thursday.", extra=2)
    host.drain()

    assert "Be careful.\n\nTrusted." == given.system
    (reference,) = given.references
    assert "On Thursday." in reference
    assert f"{given.system}\n\n{reference}" == given.text
    said = [{"role": "assistant", "content": "Hi."}]
    assert [
        {"role": "system", "content": "Base.\n\nBe careful.\n\nTrusted."},
        {"role": "user", "content": reference},
        {"role": "assistant", "content": "Hi."},
        {"role": "user", "content": "When?"},
    ] == given.messages("When?", said, system="Base.")
    (turn,) = calls(plugin, "before_prompt", "turn")
    assert ("s", "u", "full", ["Hello."]) == (turn.session, turn.user, turn.trust, [each.text for each in turn.history])
    (result,) = calls(plugin, "on_tool_result", "result")
    assert ("calendar", "c", "Thursday") == (result.tool, result.call_id, result.output)
    assert ["On Thursday."] == [each.text for each in calls(plugin, "after_prompt", "answer")]


def test_nothing_to_say(tmp_path):
    """Without plugins there is no system message and no reference."""
    with SyncHost({}, state_folder=tmp_path) as host:
        given = BeforeAfter(host).before("When?")

        assert [{"role": "user", "content": "When?"}] == given.messages("When?")
        assert "" == given.text


def test_failing(host, plugin):
    """`failed` drops a turn for the given reason; closing that turn again changes nothing."""
    memory = BeforeAfter(host)
    for error in (ValueError("no"), DropReason.BLOCKED):
        given = memory.before("When?")
        memory.failed(given.turn_id, error)
        memory.after(given.turn_id, "Too late.")
        memory.failed(given.turn_id)
        memory.tool(given.turn_id, "late")
    host.drain()

    assert [DropReason.FAILED, DropReason.BLOCKED] == calls(plugin, "on_turn_dropped", "reason")
    assert [] == calls(plugin, "after_prompt", "answer")
    assert [] == calls(plugin, "on_tool_result", "result")


def test_the_next_turn_of_a_session_ends_the_last(host, plugin):
    """A new turn drops the open turn of its session as abandoned; turns of other sessions go on."""
    memory = BeforeAfter(host)
    first = memory.before("One.", session="s")
    elsewhere = memory.before("Two.", session="t")
    second = memory.before("Three.", session="s")
    for given in (first, elsewhere, second):
        memory.after(given.turn_id, given.turn_id)
    host.drain()

    assert [DropReason.ABANDONED] == calls(plugin, "on_turn_dropped", "reason")
    assert [elsewhere.turn_id, second.turn_id] == [each.text for each in calls(plugin, "after_prompt", "answer")]


def test_the_oldest_gives_way(host, plugin, monkeypatch):
    """A host that never closes its turns keeps a bounded number of them open; the oldest are dropped."""
    monkeypatch.setattr(before_after, "MOST_OPEN", 2)
    memory = BeforeAfter(host)
    given = [memory.before(f"Prompt {number}.") for number in range(4)]
    for each in given:
        memory.after(each.turn_id, each.turn_id)
    host.drain()

    assert [DropReason.ABANDONED] * 2 == calls(plugin, "on_turn_dropped", "reason")
    assert [each.turn_id for each in given[2:]] == [each.text for each in calls(plugin, "after_prompt", "answer")]


def test_from_many_threads(host, plugin):
    """Turns of several threads keep their prompts and answers apart."""
    memory = BeforeAfter(host)

    def converse(session):
        for number in range(5):
            given = memory.before(f"{session} {number}", session=session)
            memory.after(given.turn_id, f"{session} {number}")

    threads = [threading.Thread(target=converse, args=(f"s{number}",)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    host.drain()

    said = [(call.arguments["turn"].prompt, call.arguments["answer"].text) for call in plugin.calls_of("after_prompt")]
    assert sorted((f"s{a} {b}", f"s{a} {b}") for a in range(8) for b in range(5)) == sorted(said)


def test_tools(host):
    """Plugins' tools are listed, and run only between `before` and `after`."""
    memory = BeforeAfter(host)
    given = memory.before("When?")

    assert () == memory.tools
    assert memory.run_tool(given.turn_id, "none", {}).startswith("[tool error]")
    memory.after(given.turn_id, "Then.")
    with pytest.raises(UnknownTurn):
        memory.run_tool(given.turn_id, "none", {})


def test_a_closed_host_harms_only_before(tmp_path, caplog):
    """With a closed host `tool`, `after` and `before_compaction` write a warning to the log and raise nothing."""
    with SyncHost({}, state_folder=tmp_path) as host:
        memory = BeforeAfter(host)
        given = memory.before("When?")
    with caplog.at_level(logging.WARNING, "beaver_hooks"):
        memory.tool(given.turn_id, "t")
        memory.after(given.turn_id, "Then.")
        confirmed = memory.before_compaction(session="s")

    assert (3, False) == (len(caplog.records), confirmed)


def test_a_compaction(host, plugin):
    """`before_compaction` gives the plugins session, user and trust, and says whether all of them have confirmed."""
    memory = BeforeAfter(host, trust="inner", user="ann", budget=10)
    memory.after(memory.before("When?", session=1).turn_id, "Then.")
    confirmed = [memory.before_compaction(session=1, model="m"), memory.before_compaction(session=1, user="bob")]

    said = calls(plugin, "before_compaction", "compaction")
    assert [True, True] == confirmed
    assert [("1", "ann", "inner"), ("1", "bob", "inner")] == [(each.session, each.user, each.trust) for each in said]
    assert "after_prompt" == [call.hook for call in plugin.calls][-3]


def test_a_compaction_that_is_not_confirmed(tmp_path, caplog):
    """A plugin that fails, and a caller without a session, make the answer `False`."""
    faulty = FaultPlugin(Fault.RAISE, "before_compaction")
    with SyncHost({"f": faulty}, state_folder=tmp_path) as host, caplog.at_level(logging.WARNING, "beaver_hooks"):
        memory = BeforeAfter(host)
        confirmed = [memory.before_compaction(session="s"), memory.before_compaction()]

    assert [False, False] == confirmed
    assert "what=before_compaction" in caplog.text


def test_what_a_fail_closed_plugin_raises_comes_out(tmp_path):
    """`before` raises the error of a fail-closed plugin unchanged."""
    faulty = FaultPlugin(Fault.RAISE, "before_prompt")
    with (
        SyncHost({"f": faulty}, fail_closed=["f"], state_folder=tmp_path) as host,
        pytest.raises(FaultError),
    ):
        BeforeAfter(host).before("When?")


def test_a_host_with_a_loop_is_refused(tmp_path):
    """`BeforeAfter` refuses a host that needs an event loop."""
    with pytest.raises(HostMisused, match="SyncHost"):
        BeforeAfter(Host({}, state_folder=tmp_path))


@pytest.mark.parametrize(
    ("prompt", "said"),
    [([{"type": "text", "text": "One."}, {"type": "image_url"}, {"type": "text", "text": None}], "One."), (None, "")],
)
def test_a_prompt_that_is_no_text(host, plugin, prompt, said):
    """The text parts of a prompt are the prompt, odd messages of a history are skipped, and ids may be numbers."""
    memory = BeforeAfter(host)
    given = memory.before(prompt, session=7, user=8, history=["odd", None, {"role": "user", "content": "Hello."}])
    memory.after(given.turn_id, [{"type": "text", "text": "Yes."}])
    host.drain()

    (turn,) = calls(plugin, "before_prompt", "turn")
    assert (said, "7", "8", ["Hello."]) == (turn.prompt, turn.session, turn.user, [each.text for each in turn.history])
    assert ["Yes."] == [each.text for each in calls(plugin, "after_prompt", "answer")]


def test_two_users_with_one_name_for_their_sessions(host, plugin):
    """The next turn of one user does not end the open turn of another user with the same session name."""
    memory = BeforeAfter(host)
    ann = memory.before("When?", session="default", user="ann")
    memory.before("Where?", session="default", user="ben")
    memory.after(ann.turn_id, "On Thursday.")
    host.drain()

    assert ["On Thursday."] == [each.text for each in calls(plugin, "after_prompt", "answer")]
    assert [] == calls(plugin, "on_turn_dropped", "reason")
