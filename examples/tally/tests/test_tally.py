"""The example plugin, tested as a third party would: with the contract and its testing kit, without a host."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaver_hostspecs import CommandContext, OutcomeKind, Setup, Trust
from beaver_hostspecs.testing import RecordingReport, make_answer, make_turn
from beaver_tally import Tally, TallySettings
from beaver_tally.ledger import MOST_PROMPTS, MOST_SESSIONS, Ledger

WHEN = make_turn().when


def make_tally(limit=3):
    tally = Tally()
    tally.configure(
        Setup(settings=TallySettings(recall_limit=limit), state_folder=Path("unused"), report=RecordingReport())
    )
    return tally


async def run_turn(tally, prompt, *, injected=False, session="session-1"):
    """Run one turn and return its contribution and its report."""
    turn = make_turn(prompt=prompt, session=session, was_injected=lambda _: injected)
    report = RecordingReport()
    contribution = await tally.before_prompt(turn, report)
    await tally.after_prompt(turn, make_answer(text="Yes."), report)
    return contribution, report


def commands(tally):
    return {command.name: command.run for command in tally.provide_commands()}


async def test_first_turn():
    """The first turn of a session recalls nothing, and its prompt is stored."""
    contribution, report = await run_turn(make_tally(), "one")

    assert (
        contribution,
        report.candidate_lists,
        report.outcomes,
    ) == (None, [()], [("prompts", OutcomeKind.STORED, {"turn_number": 1, "answer_characters": 4})])


async def test_recall():
    """Later turns recall the newest prompts first, up to the limit, and report them as candidates."""
    tally = make_tally(limit=2)
    for prompt in ("one", "two", "three"):
        await run_turn(tally, prompt)

    contribution, report = await run_turn(tally, "four")

    assert [(each.id, each.text) for each in contribution.references] == [("prompt-3", "three"), ("prompt-2", "two")]
    assert report.candidate_lists == [(("prompt-3", None), ("prompt-2", None))]


async def test_sessions_are_apart():
    """The prompts of one session are not recalled in another."""
    tally = make_tally()
    await run_turn(tally, "one", session="session-1")

    contribution, _ = await run_turn(tally, "two", session="session-2")

    assert contribution is None


async def test_no_recall():
    """A limit of 0 recalls nothing."""
    tally = make_tally(limit=0)
    await run_turn(tally, "one")

    contribution, _ = await run_turn(tally, "two")

    assert contribution is None


async def test_own_recall_is_not_learned():
    """A prompt that repeats injected text is counted and not kept, and the report says why."""
    _, report = await run_turn(make_tally(), "one", injected=True)

    assert report.decisions == [("write", "refused", "repeats_recall")]
    assert report.outcomes == [("prompts", OutcomeKind.GATED, {})]


async def test_repeated_prompt():
    """The same prompt is kept once."""
    tally = make_tally()
    await run_turn(tally, "one")

    _, report = await run_turn(tally, "one")

    assert [kind for _, kind, _ in report.outcomes] == [OutcomeKind.DUPLICATE]


async def test_tool():
    """The tool answers the number of complete turns of the session it is called in."""
    tally = make_tally()
    await run_turn(tally, "one")
    (tool,) = tally.provide_tools()

    assert [
        await tool.run({}, make_turn(session=session), RecordingReport()) for session in ("session-1", "other")
    ] == [{"turns": 1}, {"turns": 0}]


async def test_commands():
    """`show` counts, `forget` forgets and reports it without content."""
    tally = make_tally()
    await run_turn(tally, "one")
    report, here = RecordingReport(), CommandContext(session="session-1")
    show, forget = commands(tally)["show"], commands(tally)["forget"]

    said = [await run((), here, report) for run in (show, forget, show)]

    assert said == ["1 turns, 1 prompts kept.", "1 prompts forgotten.", "0 turns, 0 prompts kept."]
    assert report.events == [("prompts_forgotten", {"count": 1})]


@pytest.mark.parametrize(
    ("command", "expected"), [("show", "No session is running."), ("forget", "0 prompts forgotten.")]
)
async def test_commands_without_session(command, expected):
    """Outside a session the commands say so and change nothing."""
    assert expected == await commands(make_tally())[command]((), CommandContext(), RecordingReport())


def test_description():
    """It declares the contract that it was written for, its settings, one rule and short deadlines."""
    info = Tally().describe()

    assert ("0.1.0", "1.0", TallySettings, 1, 0.5) == (
        info.version,
        info.contract,
        info.settings,
        len(info.rules),
        info.deadlines.before_prompt,
    )


def test_prompts_are_bounded():
    """A session keeps its newest prompts."""
    ledger = Ledger()
    for number in range(MOST_PROMPTS + 5):
        ledger.count("session")
        ledger.keep("session", f"prompt {number}", WHEN, Trust.PUBLIC)

    assert list(range(MOST_PROMPTS + 5, 5, -1)) == [each.number for each in ledger.last("session", 1000, Trust.FULL)]


def test_sessions_are_bounded():
    """The session that was idle longest is dropped."""
    ledger = Ledger()
    for number in range(MOST_SESSIONS + 1):
        ledger.count(f"session-{number}")

    assert [ledger.turns("session-0"), ledger.turns("session-1")] == [0, 1]


@given(st.lists(st.text(max_size=3), max_size=30))
def test_ledger_keeps_each_text_once(texts):
    """With any prompts, every turn is counted and every different prompt is kept once, newest first."""
    ledger = Ledger()
    for text in texts:
        ledger.count("session")
        ledger.keep("session", text, WHEN, Trust.PUBLIC)

    assert (len(texts), list(reversed(dict.fromkeys(texts)))) == (
        ledger.turns("session"),
        [each.text for each in ledger.last("session", 1000, Trust.FULL)],
    )


@given(st.lists(st.sampled_from(["count", "forget"]), max_size=20))
def test_forgetting_starts_anew(steps):
    """After forgetting, a session counts from 0."""
    ledger, expected = Ledger(), 0
    for step in steps:
        expected = expected + 1 if step == "count" else 0
        ledger.count("session") if step == "count" else ledger.forget("session", Trust.PUBLIC)

    assert expected == ledger.turns("session")


def test_what_was_said_with_more_trust_is_not_shown():
    """A user of less trust can neither see nor forget the prompts of users of more trust in the session."""
    ledger = Ledger()
    for trust in Trust:
        ledger.count("session")
        ledger.keep("session", f"said with {trust}", WHEN, trust)

    seen = {trust: [each.text for each in ledger.last("session", 9, trust)] for trust in Trust}
    forgotten = ledger.forget("session", Trust.FAMILIAR)

    order = [f"said with {trust}" for trust in reversed(Trust)]
    assert {trust: order[: 4 - at] for at, trust in enumerate(Trust)} == seen
    assert (2, order[2:], 4) == (
        forgotten, [each.text for each in ledger.last("session", 9, Trust.FULL)], ledger.turns("session"),
    )  # fmt: skip
