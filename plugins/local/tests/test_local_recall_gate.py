"""The recall gate: each of its rules, and properties of any series of prompts."""

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaver_hooks_local.recall.gate import Decision, GatePolicy, Window, decide, served
from beaver_hooks_local.recall.prompt_features import PromptFeatures

SAID = PromptFeatures(fingerprint="b", terms=frozenset({1, 2, 3}))
WINDOW = Window(fingerprint="a", terms=frozenset({1, 2, 3, 5}), version=(7,))


def judge(said=SAID, window=WINDOW, *, version=(7,), fresh=("a",), policy=None):
    decision = decide(said, window, version=version, fresh=fresh, policy=policy or GatePolicy())
    return f"{decision.verdict}: {decision.reason}"


@pytest.mark.shows("003-064", "003-065")
@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (attrs.evolve(SAID, by_tool=True), "skip: tool_turn"),
        (attrs.evolve(SAID, wordless=True), "skip: no_words"),
        (attrs.evolve(SAID, acknowledges=True), "skip: acknowledgement"),
    ],
)
def test_skips(said, expected):
    """Turns of tools, prompts without words and acknowledgements skip the recall, also at the start of a session."""
    assert [expected, expected] == [judge(said), judge(said, None)]


@pytest.mark.shows("003-060", "003-061", "003-062", "003-063", "003-066")
@pytest.mark.parametrize(
    ("expected", "given"),
    [
        ("recall: session_start", {"window": None, "fresh": ("a", "b")}),
        ("reuse: same_query", {"said": attrs.evolve(SAID, refers_back=True), "fresh": ("a", "b")}),
        ("recall: prior_work", {"said": attrs.evolve(SAID, refers_back=True)}),
        ("recall: memory_changed", {"version": (8,), "fresh": ()}),
        ("recall: low_confidence", {"window": attrs.evolve(WINDOW, confident=False)}),
        ("recall: stale", {"fresh": ()}),
        *(
            ("recall: topic_change", {"said": attrs.evolve(SAID, terms=each)})
            for each in ({1, 8, 9}, {9}, {1, 2, 3, 5, 9})
        ),
        *(("reuse: same_topic", {"said": attrs.evolve(SAID, terms=each)}) for each in (set(), {1, 2, 3}, {1, 2, 3, 5})),
    ],
)
def test_each_rule(expected, given):
    """The first rule that fits decides: the start, the same question, earlier work, a write, little, age, the topic."""
    assert expected == judge(**given)


@pytest.mark.shows("003-101")
@pytest.mark.parametrize("turns", [3, 4, 5])
def test_window_over(turns):
    """One recall serves exactly as many turns as the policy allows."""
    window, verdicts = WINDOW, []
    for _ in range(turns):
        verdicts.append(judge(window=window, policy=GatePolicy(topic_turns=turns)))
        window = served(window)

    assert [*["reuse: same_topic"] * (turns - 1), "recall: window_over"] == verdicts


terms = st.frozensets(st.integers(0, 6), max_size=5)
saids = st.builds(
    PromptFeatures,
    fingerprint=st.sampled_from("abc"),
    terms=terms,
    wordless=st.booleans(),
    acknowledges=st.booleans(),
    refers_back=st.booleans(),
    by_tool=st.booleans(),
)
windows = st.none() | st.builds(
    Window,
    fingerprint=st.sampled_from("abc"),
    terms=terms,
    version=st.tuples(st.integers(0, 2)),
    turns=st.integers(1, 6),
    confident=st.booleans(),
)


@given(saids, windows, st.tuples(st.integers(0, 2)), st.frozensets(st.sampled_from("abc")))
def test_what_always_holds(said, window, version, fresh):
    """The gate decides the same each time, reuses only a fresh recall, and skips exactly the prompts that need none."""
    decision = decide(said, window, version=version, fresh=fresh, policy=GatePolicy())
    used = said.fingerprint if decision.reason == "same_query" else window and window.fingerprint

    assert decision == decide(said, window, version=version, fresh=fresh, policy=GatePolicy())
    assert (decision.verdict == "skip") == (said.by_tool or said.wordless or said.acknowledges)
    assert decision.verdict != "reuse" or used in fresh
    assert decision.reason != "same_topic" or (window.version == version and window.turns < 4)


@given(st.lists(saids, min_size=1, max_size=12))
def test_any_session(session):
    """In any session the first prompt that needs memory recalls, and one recall serves at most four turns."""
    window, verdicts, served_turns = None, [], 0
    for said in session:
        fresh = set() if window is None else {window.fingerprint}
        decision = decide(said, window, version=(0,), fresh=fresh, policy=GatePolicy())
        verdicts += [decision] if decision.verdict != "skip" else []
        if decision.verdict == "recall":
            window, served_turns = Window(fingerprint=said.fingerprint, terms=said.terms, version=(0,)), 1
        elif decision.reason == "same_topic":
            window, served_turns = served(window), served_turns + 1
        assert served_turns <= 4

    assert verdicts[:1] in ([], [Decision(verdict="recall", reason="session_start")])
