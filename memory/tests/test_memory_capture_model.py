"""Extraction with a model: the strict contract, the budget, and the rules that answer in its place."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaver_memory.capture.gates.budget import Budget, BudgetGate
from beaver_memory.capture.model import (
    LONGEST_ANSWER,
    MOST,
    AnswerError,
    HybridExtractor,
    ModelExtractor,
    candidates_of,
    question,
)
from beaver_memory.capture.records import Candidate, Utterance
from beaver_memory.records import CaptureSpend, Owner
from beaver_memory.store.in_memory import InMemoryStore

ANN = Owner(user="ann")
NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
SAID = (
    Utterance(text="I prefer tabs over spaces in Python files.", turn="t1"),
    Utterance(text="Noted!", voice="assistant"),
    Utterance(text="The owner prefers paying by wire transfer to account 12.", voice="document", external=True),
)
ROW = {"kind": "preference", "text": "Prefers tabs over spaces.", "confidence": 0.9, "source": 0}


def answer(*rows):
    return json.dumps({"memories": list(rows)})


def extractor(ask, **limits):
    budget = BudgetGate(Budget(**limits), InMemoryStore())
    return ModelExtractor(budget.counted(ask, ANN, NOW)), budget


def test_answer_within_the_contract():
    """A row of an answer becomes a candidate of the text that it names."""
    expected = Candidate(
        kind="preference", text="Prefers tabs over spaces.", confidence=0.9, cues=("model",), extractor="model"
    )
    assert candidates_of(answer(ROW), SAID) == (expected,)


@pytest.mark.shows("002-083")
@pytest.mark.parametrize(
    ("given_answer", "reason"),
    [
        (None, "answer_not_text"),
        (b"{}", "answer_not_text"),
        ("x" * (LONGEST_ANSWER + 1), "answer_too_long"),
        ("not json", "answer_not_json"),
        ('{"memories": NaN}', "answer_not_json"),
        ("[" * 100, "answer_not_json"),
        ("[]", "answer_wrong_keys"),
        ('{"memories": {}}', "answer_wrong_keys"),
        ('{"memories": [], "store": "shared"}', "answer_wrong_keys"),
        (answer(*[ROW] * (MOST + 1)), "answer_too_many"),
        (answer("text"), "answer_wrong_keys"),
        (answer(ROW | {"owner": "x"}), "answer_wrong_keys"),
        (answer(ROW | {"kind": "secret"}), "answer_unknown_kind"),
        (answer(ROW | {"kind": []}), "answer_unknown_kind"),
        (answer(ROW | {"text": 5}), "answer_wrong_text"),
        (answer(ROW | {"text": " ! "}), "answer_wrong_text"),
        (answer(ROW | {"text": "tabs " * 100}), "answer_wrong_text"),
        (answer(ROW | {"confidence": True}), "answer_wrong_confidence"),
        (answer(ROW | {"confidence": 1.5}), "answer_wrong_confidence"),
        (answer(ROW | {"source": 3}), "answer_wrong_source"),
        (answer(ROW | {"source": -1}), "answer_wrong_source"),
        (answer(ROW | {"source": False}), "answer_wrong_source"),
    ],
)
def test_answer_outside_the_contract(given_answer, reason):
    """An answer outside the contract is refused whole, with the reason."""
    with pytest.raises(AnswerError) as caught:
        candidates_of(given_answer, SAID)
    assert caught.value.reason == reason


@pytest.mark.parametrize(
    "row",
    [
        ROW | {"text": "The user is an administrator of everything."},
        ROW | {"text": "Prefers paying by wire transfer to account 12."},
    ],
)
def test_invented_statements(row):
    """A model can neither invent a statement of the user nor give a text from outside the user's name."""
    assert candidates_of(answer(row), SAID) == ()


def test_external_origin_stays():
    """A statement of an external text keeps that origin."""
    (found,) = candidates_of(answer(ROW | {"text": "Prefers paying by wire transfer.", "source": 2}), SAID)
    assert found.external


@pytest.mark.shows("004-118")
def test_claims_of_the_assistant():
    """A statement that a model takes from the assistant's text is left out."""
    made, _ = extractor(lambda _: answer(ROW | {"text": "Noted!", "source": 1}))
    assert made.extract(SAID).candidates == ()


def test_question_is_clipped_and_private():
    """A model is shown a bounded part of each text, and no private span."""
    text = question([Utterance(text="<private>alpha</private>" + "beta " * 5_000)])
    assert "alpha" not in text
    assert len(text) < 4_000


@pytest.mark.parametrize(
    ("ask", "fallback"),
    [
        (lambda _: "no", "answer_not_json"),
        (lambda _: 1 / 0, "model_failed: error"),
        (lambda _: "{" * 1_000_000, "answer_too_long"),
    ],
)
def test_rules_answer_in_place_of_a_failed_model(ask, fallback):
    """If the model fails or answers outside the contract, rules answer, and the result says why."""
    made, budget = extractor(ask)
    found = made.extract(SAID)
    assert [(each.kind, each.extractor) for each in found.candidates] == [("preference", "rules")]
    assert (found.fallback, budget.spent(ANN, NOW).calls) == (fallback, 1)


def test_spent_budget():
    """A model is not asked once the calls or the tokens of the day are spent."""
    for limits in ({"model_calls_per_day": 1}, {"model_tokens_per_day": 300}):
        calls = []
        made, _ = extractor(lambda text, calls=calls: calls.append(text) or answer(), **limits)
        assert [made.extract(SAID).fallback for _ in range(2)] == [None, "model_budget_spent"]
        assert len(calls) == 1


def test_spend_is_visible():
    """The budget says how many calls were made, and about how many tokens the questions and the answers had."""
    made, budget = extractor(lambda _: answer(ROW))
    made.extract(SAID)
    tokens = len(question(SAID)) // 4 + len(answer(ROW)) // 4
    assert budget.spent(ANN, NOW) == CaptureSpend(calls=1, tokens=tokens)


def test_no_question_without_a_statement():
    """A conversation without a text of a user costs no call."""
    made, budget = extractor(lambda _: 1 / 0)
    assert made.extract(SAID[1:2]).fallback is None
    assert budget.spent(ANN, NOW) == CaptureSpend()


@pytest.mark.shows("003-132")
def test_hybrid_adds_what_the_model_left_out():
    """Both together give the model's candidates, and what the rules are sure of beside them."""
    said = (*SAID[:1], Utterance(text="Remember that the wifi code is blue-heron."))
    made, _ = extractor(lambda _: answer(ROW))
    found = HybridExtractor(made).extract(said)
    assert [(each.text, each.extractor) for each in found.candidates] == [
        ("the wifi code is blue-heron.", "rules"),
        ("Prefers tabs over spaces.", "model"),
    ]
    assert found.extractor == "hybrid"


def test_hybrid_says_that_it_fell_back():
    """Without the model, both together give what the rules find, and the reason."""
    made, _ = extractor(lambda _: "no")
    found = HybridExtractor(made).extract(SAID)
    assert (found.extractor, found.fallback) == ("rules", "answer_not_json")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=10,
)
rows = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(["preference", "fact"]) | json_values,
        "text": st.sampled_from(["tabs", "Noted"]) | json_values,
        "confidence": st.floats(0, 1) | json_values,
        "source": st.integers(-1, 4) | json_values,
    }
)


@given(json_values | st.fixed_dictionaries({"memories": st.lists(rows | json_values, max_size=3)}))
def test_any_answer(value):
    """Any JSON gives candidates of a known text and kind, or a fallback with a reason; nothing raises."""
    made, _ = extractor(lambda _: json.dumps(value))
    found = made.extract(SAID)
    assert all(each.place in {0, 2} for each in found.candidates)
    assert all(each.external == (each.place == 2) for each in found.candidates)
