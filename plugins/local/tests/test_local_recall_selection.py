"""The choice of hits that a turn is given, and the reason of each."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from case_files import rows
from hypothesis import given
from hypothesis import strategies as st

from beaver_hooks_local.recall.question_kind import QuestionKind, kind_of
from beaver_hooks_local.recall.selection import REASONS, SelectionPolicy, listed, select, was_true
from beaver_memory.query import Hit
from beaver_memory.records import Memory

DATA = Path(__file__).with_name("data")
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
MANY = QuestionKind(many=True)
PAST = QuestionKind(past=True)
ORDINARY = QuestionKind()


def hit(id_, score=0.8, title="", **fields):
    memory = Memory(id=id_, title=title or f"Fact {id_}.", created_at=NOON, updated_at=NOON, hash="", **fields)
    return Hit(memory=memory, score=score)


def hits(*scores):
    return [hit(id_, score) for id_, score in enumerate(scores, 1)]


def reasons(found, policy=SelectionPolicy(floor=0.4), **more):  # noqa: B008 - frozen
    return select(found, policy, **more).reasons


@pytest.mark.shows("003-039", "003-054")
def test_the_number_follows_the_scores():
    """The three best hits are given, then those that have a share of the best score, up to the limit."""
    policy = SelectionPolicy(most=5, share=0.5, floor=0.4)

    assert {1: "given", 2: "given", 3: "given", 4: "weak"} == reasons(hits(0.9, 0.3, 0.25, 0.24), policy)
    assert {1: "given", 2: "weak", 3: "weak"} == reasons(hits(0.9, 0.19, 0.1), policy)
    assert {**dict.fromkeys(range(1, 6), "given"), 6: "limit"} == reasons(hits(*[0.9] * 6), policy)


@pytest.mark.shows("003-099")
def test_a_prompt_about_something_else():
    """Nothing is given, and nothing listed, if the best hit scores less than the floor."""
    policy = SelectionPolicy(share=0.5, floor=0.4)

    assert {1: "unrelated", 2: "unrelated"} == reasons(hits(0.39, 0.38))
    assert ((), ()) == (listed(hits(0.39, 0.38), policy), listed([], policy))
    assert [1, 2] == [each.memory.id for each in listed(hits(0.8, 0.4, 0.39), policy)]


def test_a_question_for_many():
    """A question for a list takes hits with a smaller share, and those of other sessions first."""
    policy = SelectionPolicy(most=4, share=0.8, floor=0.2)
    found = [hit(id_, score, session=session) for id_, score, session in
             ((1, 0.9, "a"), (2, 0.8, "a"), (3, 0.75, "a"), (4, 0.7, "b"), (5, 0.69, "c"))]  # fmt: skip

    assert [1, 2, 3] == [each.memory.id for each in select(found, policy).hits]
    assert [1, 2, 4, 5] == [each.memory.id for each in select(found, policy, kind=MANY).hits]
    assert "limit" == reasons(found, policy, kind=MANY)[3]


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        *rows(DATA / "repeats.jsonl", "one", "other", "expected"),
        ("tea " * 1_000 + "green", "tea " * 1_000 + "black", "given"),
    ],
)
def test_repeats(one, other, expected):
    """A memory that adds no word to a better one is given once; a name, a number or a denial makes it another one."""
    assert {1: "given", 2: expected} == reasons([hit(1, 0.9, one), hit(2, 0.7, other)])


def test_what_the_conversation_says():
    """A memory that the conversation holds is passed over, and the next ones take its place."""
    assert {1: "said", 2: "given", 3: "given", 4: "given", 5: "weak"} == reasons(hits(0.9, *[0.3] * 4), said={1})


@pytest.mark.parametrize(
    ("prompt", "kind"),
    [*rows(DATA / "questions.jsonl", "prompt", "kind"), pytest.param("7" * 200_000, "ordinary", id="many digits")],
)
def test_kinds_of_questions(prompt, kind):
    """Lists, counts and questions for the past are known in English, German and Chinese."""
    assert {"many": MANY, "past": PAST, "ordinary": ORDINARY}[kind] == kind_of(prompt)


def test_a_question_for_the_past_keeps_the_present():
    """The best hit that holds now is among the first three, although many that have ended score more."""
    found = [hit(id_, 0.9, f"Ann lived in town {id_}.", valid_until=NOON) for id_ in range(1, 6)]
    found += [hit(6, 0.8, "Ann lives in Rome."), hit(7, 0.7, "Ann has a flat.")]

    assert [1, 2, 6, 3] == [each.memory.id for each in select(found, SelectionPolicy(most=4), kind=PAST).hits]
    assert [1, 2, 3, 4] == [each.memory.id for each in select(found, SelectionPolicy(most=4)).hits]
    assert [1, 2, 3, 4] == [each.memory.id for each in select(found[:5], SelectionPolicy(most=4), kind=PAST).hits]


def test_what_was_true():
    """A memory that has ended was true; one that expired, or that does not hold yet, is not shown."""
    day = timedelta(days=1)
    cases = ({}, {"valid_until": NOON - day}, {"expires_at": NOON - day}, {"valid_from": NOON + day})

    assert [True, True, False, False] == [was_true(hit(1, **fields).memory, NOON) for fields in cases]


@given(st.lists(st.floats(0, 1), max_size=20), st.booleans(), st.integers(3, 8), st.floats(0, 1), st.floats(0, 1))
def test_every_hit_has_a_reason(scores, many, most, share, floor):
    """Each hit has a known reason, at most `most` are given, and each of them is a hit."""
    policy = SelectionPolicy(most=most, share=share, floor=floor)
    found = select(hits(*scores), policy, kind=QuestionKind(many=many))
    given_ids = {id_ for id_, reason in found.reasons.items() if reason == "given"}

    assert {*range(1, len(scores) + 1)} == {*found.reasons}
    assert {*found.reasons.values()} <= {*REASONS}
    assert (given_ids, True) == ({each.memory.id for each in found.hits}, len(found.hits) <= most)
