"""`beaver why` explains a turn."""

import json
from datetime import UTC, datetime, timedelta

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaver_hooks.audit.events import AuditEvent
from beaver_hooks.audit.trail import Trail
from beaver_hooks.cli.absence import Absence
from beaver_hooks.cli.receipt_texts import receipt_text
from beaver_hooks.cli.why import read_receipt
from beaver_hooks.receipts.receipts import Clip, Decision, Failure, Outcome, PluginReceipt, Receipt, to_json
from beaver_hostspecs import DropReason

WHEN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
TURN = f"turn-{'0123456789ab' * 2}"
OTHER = f"turn-{'01fedcba9876' * 2}"
NOBODY = Absence(there=(), disabled={})


def receipt(turn=TURN, **rest):
    fields = {"closed": WHEN + timedelta(milliseconds=1500), "state": "committed", **rest}
    return Receipt(turn=turn, session="h:1", prompt="h:2", prompt_characters=30, opened=WHEN, **fields)


@pytest.fixture
def folder(scratch):
    return scratch / ".beaver"


@pytest.fixture
def trail(folder):
    trail = Trail.open(folder)
    yield trail
    trail.close()


def keep(trail, *receipts):
    for number, each in enumerate(receipts):
        trail.put_receipt(each.turn, WHEN + timedelta(seconds=number), to_json(each))
    trail.flush()


def said(**parts):
    """Return the lines about a plugin with that part in a turn, without the lines about the turn."""
    return receipt_text(receipt(plugins={"p": PluginReceipt(**parts)}), {}, NOBODY).split("\n\np\n")[1].splitlines()


def test_nothing_is_stored(cli, folder):
    """Where nothing is stored, `why` is an error of usage that says so, and creates nothing."""
    ran = cli("why")

    assert (2, "", f"Error: Nothing is stored yet; `beaver run` will store sessions in {folder}.\n") == ran
    assert not folder.exists()


def test_a_trail_without_receipts(cli, trail):
    """A trail without receipts has no turn to explain."""
    assert (2, True) == (cli("why").code, "Nothing is stored yet" in cli("why").err)


def test_the_newest_turn(cli, trail):
    """Without a word and with `last` the newest turn is explained; `--json` prints the stored receipt."""
    keep(trail, receipt(OTHER), receipt())

    assert cli("why").out == cli("why", "last").out == cli("why", TURN).out
    assert json.loads(json.dumps(to_json(receipt()))) == cli("why", "--json").json


def test_a_turn_by_its_beginning(cli, trail):
    """The beginning of an id is enough, an ambiguous one names the candidates, and an unknown one likely causes."""
    keep(trail, receipt(OTHER), receipt())

    assert TURN == cli("why", "turn-0123", "--json").json["turn"]
    assert (
        f"Error: `turn-01` is the beginning of 2 turns: {TURN}, {OTHER}; write more of the id.\n"
        == cli("why", "turn-01").err
    )
    missing = cli("why", "turn-7")
    assert (2, "") == (missing.code, missing.out)
    assert "is older than the newest 10,000 turns" in missing.err
    assert "--config" in missing.err


def test_a_turn_of_another_host(cli, trail):
    """The id of another host's turn is stored as its keyed hash, and `why` still finds the turn by the id."""
    keep(trail, receipt(trail.identify("ticket 7")))

    assert trail.identify("ticket 7") == cli("why", "ticket 7", "--json").json["turn"]


@pytest.mark.shows("003-013")
def test_a_whole_story(cli, trail):
    """The text shows every field of a receipt, within 80 columns."""
    gateway = PluginReceipt(
        candidates=(("a", 0.9), ("b", None), ("c", 0.4)),
        considered=14,
        injected=("a", None),
        blocks=1,
        tokens=1200,
        decisions=(Decision(gate="budget", verdict="cut", reason="a reference is longer than what is left"),),
        outcomes=(
            Outcome(plane="turns", kind="stored", facts={"messages": 2}),
            Outcome(plane="turns", kind="stored", facts={"messages": 2}),
            Outcome(plane="facts", kind="duplicate"),
        ),
        clipped=(Clip(what="references", shown=2, total=5),),
        failures=(Failure(hook="after_prompt", category="raised", error="OSError", at="gateway.client:88"),),
        degraded=("history_not_written",),
        milliseconds={"after_prompt": 1234.5, "before_prompt": 9.44, "tool:memory": 1},
    )
    keep(trail, receipt(tokens=1200, plugins={"gateway": gateway, "tally": PluginReceipt()}))
    trail.put_health("gateway", {"state": "degraded", "since": WHEN.isoformat(), "faults": {"after_prompt": "raised"}})
    trail.put_health("curated", {"state": "ok"})
    trail.put_health("local", {"state": "no"})
    trail.put_health("removed", {"state": "degraded", "faults": {"after_prompt": "raised"}})
    trail.flush()

    ran = cli("why")

    assert (
        f"Turn {TURN}\n"
        "  When      2026-01-02 03:04:05 UTC, for 1.5 s\n"
        "  Ended     It was answered, and all plugins have finished.\n"
        "  Prompt    30 characters; memory added about 1,200 tokens\n"
        "  Trouble   gateway (after_prompt raised, history_not_written)\n"
        "\n"
        "gateway\n"
        "  Recalled  1 block in the system prompt and 2 references of 14 considered\n"
        "            reached the model, about 1,200 tokens\n"
        "  Shown     a 0.90, (no id)\n"
        "  Left out  b, c 0.40, and 11 more\n"
        "  Decided   budget: cut (a reference is longer than what is left)\n"
        "  Kept      turns: stored [messages=2], 2 times\n"
        "  Kept      facts: duplicate, it was stored already\n"
        "  Cut       references: 2 of 5 shown\n"
        "  Failed    after_prompt: it raised an error (OSError at gateway.client:88)\n"
        "  Degraded  it reported history_not_written\n"
        "  Time      before_prompt 9.4 ms, tool:memory 1.0 ms, after_prompt 1.2 s\n"
        "\n"
        "tally\n"
        "  Recalled  nothing: the plugin was not asked\n"
        "  Kept      nothing: the plugin reported no write\n"
        "\n"
        "Plugins that are out of service or degraded now:\n"
        "  gateway   degraded since 2026-01-02 03:04:05 UTC: after_prompt: raised\n"
        "  local     its health cannot be read; `beaver doctor` shows the details\n"
        "  removed   not installed (last seen degraded: after_prompt: raised)\n"
    ) == ran.out
    assert max(map(len, ran.out.splitlines())) <= 80


@pytest.mark.parametrize(
    ("parts", "why"),
    [
        ({"milliseconds": {"before_prompt": 1}}, "the plugin was asked and had nothing"),
        ({"considered": 3}, "none of 3 candidates scored high enough and had room"),
        ({"failures": (Failure(hook="before_prompt", category="timeout"),)}, "before_prompt failed, see below"),
        (
            {"decisions": (Decision(gate="memory", verdict="off", reason="x"),)},
            "memory was off (`/memory on` in the session switches it on",
        ),
        (
            {"decisions": (Decision(gate="suspension", verdict="left_out", reason="x"),)},
            "before_prompt is suspended, see below",
        ),
        ({"failures": (Failure(hook="after_prompt", category="new"),)}, "the plugin was not asked"),
    ],
)
def test_why_nothing_was_recalled(parts, why):
    """The line `Recalled` gives the reason why a plugin recalled nothing."""
    assert f"  Recalled  nothing: {why}" == said(**parts)[0]


def test_references_that_nobody_said_were_considered():
    """A plugin that injects a reference without reporting candidates is shown with the reference alone."""
    assert "  Recalled  1 reference reached the model, no tokens" == said(injected=("a",))[0]


def test_many_candidates():
    """Of many candidates the text names the first ten and counts the others."""
    candidates = tuple((f"c{number}", None) for number in range(12))

    assert "  Left out  c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, and 2 more" == said(candidates=candidates)[1]


@pytest.mark.parametrize(
    ("failure", "text"),
    [
        (Failure(hook="h", category="new"), "  Failed    h: new"),
        (Failure(hook="h", category="timeout", error="E"), "  Failed    h: it did not finish in time (E)"),
    ],
)
def test_failures(failure, text):
    """A failure is shown with its hook, its category, and the known parts of the error."""
    assert text == said(failures=(failure,))[2]


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"state": "open", "closed": None}, "It is still going on."),
        ({"state": "pending"}, "plugins were still working on it when this receipt was written. Ask again in a moment"),
        ({"state": "dropped", "reason": DropReason.CANCELLED}, "so plugins learn nothing from it. It was cancelled."),
        ({"lost": 2}, "2 background calls never ran (a full queue,"),
    ],
)
def test_how_it_ended(fields, text):
    """The text shows how a turn ended, and the consequence for the memories."""
    assert text in " ".join(receipt_text(receipt(**fields), {}, NOBODY).split())


def test_a_turn_that_is_open():
    """An open turn has no duration yet."""
    assert "  When      2026-01-02 03:04:05 UTC\n" in receipt_text(receipt(state="open", closed=None), {}, NOBODY)


def test_a_dropped_turn_teaches_nothing():
    """A plugin that kept nothing of a dropped turn is shown with that reason and no fault."""
    dropped = receipt(state="dropped", reason=DropReason.FAILED, plugins={"p": PluginReceipt()})

    assert "  Kept      nothing: plugins learn nothing from a dropped turn" in receipt_text(dropped, {}, NOBODY)


def test_nobody_took_part():
    """A turn without plugins is shown as such, with the plugins that are out of service now."""
    here = Absence(there=["gateway"], disabled={})
    text = receipt_text(receipt(), {"gateway": {"state": "unavailable", "reason": "no key"}}, here)

    assert "No plugin took part in this turn; `beaver plugins` lists the installed ones.\n" in text
    assert text.endswith("Plugins that are out of service or degraded now:\n  gateway   unavailable: no key")


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"unreadable": True},
        to_json(receipt()) | {"reason": "bored"},
        to_json(receipt()) | {"state": "no"},
        to_json(receipt()) | {"opened": "2026-01-02T03:04:05"},
    ],
)
def test_a_damaged_receipt(cli, trail, body):
    """A damaged receipt is an error that names its turn; `--json` prints it unchanged."""
    trail.put_receipt(TURN, WHEN, body)
    trail.flush()

    ran = cli("why")

    assert (5, "", True) == (ran.code, ran.out, ran.err.startswith(f"Error: The receipt of {TURN} is damaged"))
    assert 0 == cli("why", "--json").code


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


def changed(body, data):
    """Return plain data with any part of it replaced by random data."""
    if isinstance(body, dict) and body and data.draw(st.booleans()):
        key = data.draw(st.sampled_from(sorted(body)))
        return body | {key: changed(body[key], data)}
    if isinstance(body, list) and body and data.draw(st.booleans()):
        return [changed(body[0], data), *body[1:]]
    return data.draw(JSON)


FULL = json.loads(
    json.dumps(
        to_json(
            receipt(
                plugins={
                    "p": PluginReceipt(
                        candidates=(("a", 0.5),),
                        injected=("a",),
                        decisions=(Decision(gate="g", verdict="v", reason="r"),),
                        outcomes=(Outcome(plane="p", kind="stored", facts={"n": 1}),),
                        clipped=(Clip(what="w", shown=1, total=2),),
                        failures=(Failure(hook="h", category="raised"),),
                        milliseconds={"before_prompt": 1.0},
                    )
                }
            )
        )
    )
)


@given(st.data())
def test_any_receipt_is_told_or_refused(data):
    """Any data in place of a receipt is either explained or refused as damaged."""
    body = changed(FULL, data)
    try:
        read = read_receipt(body)
    except ValueError:
        return
    assert receipt_text(read, {}, NOBODY).startswith("Turn")


def test_what_is_kept_reads_back():
    """A receipt survives writing and reading unchanged."""
    assert FULL == json.loads(json.dumps(to_json(read_receipt(FULL))))


def flip(folder, text):
    """Flip a bit of a text in the file of the trail."""
    path = folder / "host.db"
    content = bytearray(path.read_bytes())
    content[content.index(text.encode())] ^= 1
    path.write_bytes(content)


def test_a_receipt_with_a_flipped_bit(cli, folder):
    """A receipt with a flipped bit is not shown and is named; the others are, and the doctor names it, too."""
    trail = Trail.open(folder)
    keep(trail, receipt(OTHER), attrs.evolve(receipt(), prompt="h:abcdefg"))
    trail.close()
    flip(folder, "h:abcdefg")
    newest, named, begun = cli("why"), cli("why", TURN, "--json"), cli("why", TURN[:12])
    found = {each["subject"]: each["text"] for each in cli("doctor", "--json").json["findings"]}

    assert [("", True)] * 3 == [
        (each.out, f"The receipt of {TURN} is damaged, so it is not shown" in each.err)
        for each in (newest, named, begun)
    ]
    assert OTHER == cli("why", OTHER, "--json").json["turn"]
    assert f"{folder}/host.db is damaged: the receipt of {TURN} fails its checksum" == found["audit trail"]


def test_what_came_after_the_turn(cli, trail):
    """Events that name the turn, by its id or its keyed hash, follow its receipt; others do not."""
    keep(trail, receipt())
    hashed = trail.identify(TURN)
    for number, turns in enumerate(([f"{hashed}/29"], [TURN], ["h:other/3"], "h:other", [])):
        facts = {"turns": turns, "number": number, "outcomes": []}
        trail.append(AuditEvent(name="memory_captured", at=WHEN, plugin="local", facts=facts))
    trail.flush()

    lines = cli("why").out.split("After the turn:\n")[1].splitlines()
    assert lines == [f"  local     memory_captured, 2026-01-02 03:04:05 UTC [number={number}]" for number in (0, 1)]
