"""The rules of reconciliation: which statements end an earlier one, in three languages, and which do not."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from case_files import rows
from hypothesis import given
from hypothesis import strategies as st

from beaver_memory.reconcile.claims import LONGEST_STATEMENT, claims_of
from beaver_memory.reconcile.decision import Decision
from beaver_memory.reconcile.rule_judge import RuleJudge, with_keywords
from beaver_memory.records import Memory, NewMemory
from beaver_memory.store.fingerprint import hash_of

DATA = Path(__file__).with_name("data") / "reconcile"
MONDAY = datetime(2026, 3, 2, 9, tzinfo=UTC)


def decided(earlier, later, **fields):
    """Return the decision about a statement, a day after another one."""
    old = Memory(id=1, hash=hash_of(earlier, ()), title=earlier, created_at=MONDAY, updated_at=MONDAY)
    new = NewMemory(**{"title": later, "created_at": MONDAY + timedelta(days=1), **fields})
    return RuleJudge().decide(new, [old])


@pytest.mark.parametrize(("earlier", "later", "reason"), rows(DATA / "ended.jsonl", "earlier", "later", "reason"))
def test_a_statement_ends_the_one_that_it_contradicts(earlier, later, reason):
    """Another value of a single-valued attribute, a denial, a replacement or another number ends the earlier one."""
    assert Decision(event="DELETE", places=(0,), reason=reason) == decided(earlier, later)


@pytest.mark.parametrize(("one", "other"), rows(DATA / "both_hold.jsonl", "one", "other"))
def test_statements_that_both_hold_stay(one, other):
    """Several values, another subject, the past, plans and occasions end nothing, in either order."""
    both = [Decision(reason="no_conflict")] * 2
    assert both == [decided(one, other), decided(other, one)]


@pytest.mark.parametrize(("earlier", "later"), rows(DATA / "limited.jsonl", "earlier", "later"))
def test_a_limited_statement_ends_no_wider_one(earlier, later):
    """A statement that holds on some occasions, for some purpose or in some place leaves the wider one true."""
    assert decided(earlier, later).event == "ADD"


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("I live in Lisbon.", "I moved to Porto for my job."),
        ("The standup is on Mondays.", "The standup is on Tuesdays."),
        ("I work for Acme.", "I work for Globex."),
        ("In summer I cycle to work.", "In summer I walk to work now."),
        ("I have a car.", "I sold my car in Berlin."),
    ],
)
def test_a_reason_or_a_value_limits_nothing(earlier, later):
    """A reason, a value that is a day, a limit of both statements and the place of an event do not save the earlier."""
    assert decided(earlier, later).event == "DELETE"


@pytest.mark.parametrize(
    ("earlier", "later", "decision"),
    [
        ("I live in Rome.", "Now I live in Rome.", Decision(event="NONE", places=(0,), reason="same_words")),
        ("The parser reads tokens.", "The parser reads all tokens of a file.",
         Decision(event="UPDATE", places=(0,), reason="more_words")),
        ("The parser reads big tokens of a file.", "The parser reads tokens of a file.",
         Decision(event="NONE", places=(0,), reason="fewer_words")),
    ],
)  # fmt: skip
def test_a_statement_with_the_same_words_is_a_mention_or_an_update(earlier, later, decision):
    """The same words and fewer words are a mention, and more words are an update."""
    assert decision == decided(earlier, later)


def test_a_memory_of_many_statements_is_not_ended():
    """One changed statement does not end a memory that holds four."""
    long = "I live in Rome. The cat is grey. The roof leaks. The car is blue."

    assert Decision(reason="no_conflict") == decided(long, "I live in Turin now.")


def test_another_speaker_ends_nothing():
    """What Ann says of herself is not about Bob."""
    old = Memory(
        id=1, hash="", title="I live in Rome.", speaker="Ann", created_at=MONDAY, updated_at=MONDAY
    )  # fmt: skip
    said = [NewMemory(title="I live in Turin now.", speaker=name) for name in ("Bob", "Ann")]

    found = [RuleJudge().decide(new, [old]) for new in said]
    assert [Decision(reason="no_conflict"), Decision(event="DELETE", places=(0,), reason="single_value")] == found


def test_a_statement_longer_than_the_limit_is_not_parsed():
    """A long statement neither ends another one nor costs the time of parsing it."""
    long = "I live in Turin now, " + "x " * LONGEST_STATEMENT

    assert Decision(reason="no_conflict") == decided("I live in Rome.", long)


def test_a_memory_gets_other_words_for_its_attribute():
    """The keywords name the attribute in the words of a question, beside those that the memory has."""
    found = with_keywords(NewMemory(title="I moved to Turin.", keywords=("piedmont",))).keywords

    assert ("piedmont", True, True) == (found[0], "live" in found, "where" in found)


@given(one=st.text(max_size=300), other=st.text(max_size=300))
def test_any_two_texts_are_compared(one, other):
    """No text makes the rules fail, and a text never ends itself."""
    for each in (one, other):
        claims_of(each)
    try:
        found = decided(one, other), decided(one, one)
    except ValueError:
        return  # a text without content is no memory
    assert "DELETE" != found[1].event
