"""The gates of capture: each refuses or queues with a reason of its own."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import attrs
import pytest
from case_files import rows

from beaver_hostspecs.testing import make_canary
from beaver_memory.capture.evidence import LONGEST, evidence_of
from beaver_memory.capture.gates.budget import Budget, BudgetGate, BudgetSpentError
from beaver_memory.capture.gates.chain import Gates, PrivacyGate
from beaver_memory.capture.gates.verdict import Occasion
from beaver_memory.capture.records import Candidate, Utterance
from beaver_memory.capture.sentences import sentences
from beaver_memory.records import CaptureSpend, Owner
from beaver_memory.store.in_memory import InMemoryStore

DATA = Path(__file__).with_name("data") / "capture"
NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
HERE = Occasion(
    owner=Owner(user="ana"), when=NOW, project="shop", paths=("/srv/clients/acme/plan.md",), tags=("Health",)
)
FACT = Candidate(kind="fact", text="My sister Anna moved to Lisbon.", confidence=0.8)


def gates(*, enabled=True, privacy=None, **limits):
    return Gates(BudgetGate(Budget(**limits), InMemoryStore()), privacy=privacy, enabled=enabled)


def verdicts(chain, *candidates, here=HERE):
    """Return gate, action and reason of each candidate, or `None`."""
    judged = chain.judged(candidates, here)
    return [each.verdict and (each.verdict.gate, each.verdict.action, each.verdict.reason) for each in judged]


def with_(**fields):
    return attrs.evolve(FACT, **fields)


def test_a_plain_fact_is_admitted():
    """A certain statement of the user passes every gate."""
    assert verdicts(gates(), FACT) == [None]


@pytest.mark.shows("003-044", "003-071")
@pytest.mark.parametrize(
    ("candidate", "expected"),
    [
        (with_(confidence=0.2), ("write", "refuse", "low_confidence")),
        (with_(confidence=0.35), ("approval", "queue", "low_confidence")),
        (with_(kind="preference", external=True), ("approval", "queue", "external_origin")),
        (with_(kind="rule", external=True, explicit=True), ("approval", "queue", "external_origin")),
        (with_(steers_agent=True, external=True), ("approval", "queue", "external_origin")),
        (with_(external=True), None),
        (with_(kind="rule", steers_agent=True), ("approval", "queue", "rule_about_the_agent")),
        (with_(kind="preference", steers_agent=True), ("approval", "queue", "rule_about_the_agent")),
        (with_(kind="fact", steers_agent=True), ("approval", "queue", "rule_about_the_agent")),
        (with_(kind="rule", steers_agent=True, explicit=True), None),
        (with_(kind="rule"), None),
        (with_(confidence=0.1, explicit=True), None),
        (with_(text="x <private>y</private>"), ("privacy", "refuse", "private_span")),
    ],
)
def test_one_candidate(candidate, expected):
    """Each policy gives its own reason, and external text never steers the agent without approval."""
    assert verdicts(gates(), candidate) == [expected]


@pytest.mark.shows("003-045", "003-107")
@pytest.mark.parametrize(
    ("privacy", "reason"),
    [
        (PrivacyGate(projects=["sh*"]), "denied_project"),
        (PrivacyGate(tags=["health"]), "denied_tag"),
        (PrivacyGate(paths=["/srv/clients"]), "denied_path"),
        (PrivacyGate(paths=["*/acme/*"]), "denied_path"),
    ],
)
def test_denied_places(privacy, reason):
    """A turn of a listed project, label or path teaches memory nothing, even if the user asks."""
    assert verdicts(gates(privacy=privacy), with_(explicit=True)) == [("privacy", "refuse", reason)]


def test_secrets():
    """A statement with a known credential is refused."""
    canary = make_canary()
    assert verdicts(gates(), with_(text=f"my key is {canary.reveal()}")) == [("privacy", "refuse", "secret")]


@pytest.mark.shows("003-044")
def test_recalled_references():
    """A text that memory gave to this turn is not learned again, even if the user asks."""
    here = attrs.evolve(HERE, was_injected=lambda text: "Lisbon" in text)
    assert verdicts(gates(), with_(explicit=True), here=here) == [("write", "refuse", "recalled_reference")]


@pytest.mark.shows("003-044", "003-050", "003-072")
def test_near_duplicates():
    """A statement that says a little less is refused; another number or name is another statement."""
    known = "in spring my sister anna with husband kids dog cat moved from porto towards lisbon harbour"
    known += " beside old red brick church near green park gate"
    here = attrs.evolve(HERE, known=(known,))
    texts = (
        known.replace("harbour", "").capitalize(),
        known.replace("harbour", "12"),
        known.replace("anna", "eva"),
        known,
    )
    found = verdicts(gates(), *(with_(text=each) for each in texts), here=here)
    assert found == [("write", "refuse", "near_duplicate"), None, None, None]


@pytest.mark.shows("003-046")
def test_three_in_a_turn():
    """The budget serves the statements that the user asked for, then the most certain ones."""
    candidates = [with_(text=f"fact {number}", confidence=0.5 + number / 10) for number in range(4)]
    asked = with_(text="asked", explicit=True, confidence=0.5)
    judged = gates().judged([*candidates, asked], HERE)
    full = ("budget", "turn_full")
    assert [(each.candidate.text, each.verdict and (each.verdict.gate, each.verdict.reason)) for each in judged] == [
        ("asked", None), ("fact 3", None), ("fact 2", None), ("fact 1", full), ("fact 0", full),
    ]  # fmt: skip


@pytest.mark.shows("003-046")
def test_day():
    """The daily cap counts each owner apart, and begins anew the next day."""
    chain = gates(per_day=1)
    assert [chain.budget.take(HERE), chain.budget.take(HERE)] == [True, False]
    tomorrow = attrs.evolve(HERE, when=NOW + timedelta(days=1))
    found = [verdicts(chain, FACT, here=each) for each in (HERE, attrs.evolve(HERE, owner=Owner(user="bo")), tomorrow)]
    assert found == [[("budget", "refuse", "day_full")], [None], [None]]


def test_day_within_one_turn():
    """The statements of one turn share the rest of the day."""
    chain = gates(per_day=2)
    chain.budget.take(HERE)
    found = verdicts(chain, FACT, with_(text="another", confidence=0.7))
    assert found == [None, ("budget", "refuse", "day_full")]


def test_calls_of_a_model():
    """A call counts before it is made, so a model that hangs or fails is paid too, and a spent day makes no call."""
    gate, prompts = BudgetGate(Budget(model_calls_per_day=1), InMemoryStore()), []
    ask = gate.counted(lambda text: prompts.append(text) or 1 / 0, HERE.owner, NOW)
    with pytest.raises(ZeroDivisionError):
        ask("abcd" * 3)
    with pytest.raises(BudgetSpentError):
        ask("abcd")
    assert (prompts, gate.spent(HERE.owner, NOW)) == (["abcd" * 3], CaptureSpend(calls=1, tokens=3))


def test_switch():
    """The switch refuses everything, even what the user asks for."""
    assert verdicts(gates(enabled=False), with_(explicit=True)) == [("switch", "refuse", "off")]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("I like rye. I prefer oat milk!", "forgotten_before"),
        ("I like rye. Thanks a lot.", None),
        ("Thanks a lot.", "forgotten_before"),
    ],
)
def test_a_forgotten_sentence_beside_others(text, reason):
    """A statement with a forgotten sentence is refused, unless it is one of several and says nothing by itself."""
    here = attrs.evolve(HERE, was_forgotten={"I prefer oat milk!", "Thanks a lot."}.__contains__)
    assert [reason and ("write", "refuse", reason)] == verdicts(gates(), with_(text=text), here=here)


def test_evidence():
    """The evidence is the id of the turn and a bounded excerpt without credentials and private spans."""
    canary = make_canary()
    text = f"<private>alpha</private>{canary.reveal()} " + "chatter " * 100 + FACT.text + " more" * 100
    evidence = evidence_of(FACT, Utterance(text=text, turn="t7"))
    assert evidence.turn == "t7"
    assert FACT.text in evidence.excerpt
    assert len(evidence.excerpt) <= LONGEST
    whole = evidence_of(FACT, Utterance(text=text[:300], turn="t7")).excerpt
    assert "[secret]" in whole
    assert "alpha" not in whole
    assert canary.reveal() not in whole


@pytest.mark.parametrize(("message", "reason"), rows(DATA / "unmeant.jsonl", "text", "reason"))
def test_what_its_speaker_does_not_state(message, reason):
    """A condition, a story, a quotation and a text to work on are refused with a reason, unless the user asks for it."""
    here = attrs.evolve(HERE, messages=("Hello.", message))
    (part,) = {each.text for each in sentences(message)[-1:]}
    asked = with_(text=part, place=1), with_(text=part, place=1, explicit=True)
    assert [verdicts(gates(), each, here=here) for each in asked] == [[("write", "refuse", reason)], [None]]


@pytest.mark.parametrize(
    "message",
    [
        "I moved to Porto. If I had more money I would buy a house.",
        'My favourite book is "The Hobbit and Other Stories".',
        "I'm writing a story about pirates.",
        "We translate our docs into German: every release.",
        "Wenn ich koche, nehme ich Oliven\u00f6l.",
        "\u6211\u662f\u7ffb\u8bd1\uff0c\u5728\u5317\u4eac\u5de5\u4f5c\u3002",
    ],
)
def test_what_its_speaker_states(message):
    """A statement beside a condition, a title in quotation marks, and statements about stories and translations stay."""
    assert verdicts(gates(), with_(text=message), here=attrs.evolve(HERE, messages=(message,))) == [None]
