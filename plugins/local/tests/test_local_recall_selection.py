"""The choice of hits that a turn is given, and the reason of each."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaver_hooks_local.recall.question_kind import QuestionKind, kind_of
from beaver_hooks_local.recall.selection import REASONS, SelectionPolicy, listed, select, was_true
from beaver_memory.query import Hit
from beaver_memory.records import Memory

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


def test_the_number_follows_the_scores():
    """The three best hits are given, then those that have a share of the best score, up to the limit."""
    policy = SelectionPolicy(most=5, share=0.5, floor=0.4)

    assert {1: "given", 2: "given", 3: "given", 4: "weak"} == reasons(hits(0.9, 0.3, 0.25, 0.24), policy)
    assert {1: "given", 2: "weak", 3: "weak"} == reasons(hits(0.9, 0.19, 0.1), policy)
    assert {**dict.fromkeys(range(1, 6), "given"), 6: "limit"} == reasons(hits(*[0.9] * 6), policy)


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
        ("Billing is deployed from the branch stable.", "Billing is deployed from the branch stable!", "repeated"),
        ("Ann always drinks green tea in the morning now.", "Ann always drinks green tea in the morning", "repeated"),
        ("The deadline of the Atlas project is week 3.", "The deadline of the Atlas project is week 4.", "given"),
        ("Ann does drink coffee in the morning at work.", "Ann does not drink coffee in the morning at work.", "given"),
        ("The billing service is private.", "The billing service is shared.", "given"),
        ("Anna trinkt morgens immer grünen Tee.", "anna trinkt morgens immer grünen tee", "repeated"),
        ("Anna trinkt morgens immer grünen Tee.", "Anna trinkt morgens nie grünen Tee.", "given"),
        ("安娜每天早上都喝绿茶。", "安娜每天早上都喝绿茶", "repeated"),
        ("安娜每天早上都喝绿茶。", "安娜每天早上都不喝绿茶", "given"),
        ("安娜每天坐公交车去市中心的办公室上班。", "本杰每天坐公交车去市中心的办公室上班。", "given"),
        ("Anna takes the bus to the office in the city.", "Ben takes the bus to the office in the city.", "given"),
        ("The team meets in the large room at two.", "The team meets in the large room at three.", "given"),
        ("Ann flies from the Berlin office to Rome.", "Ann flies from Rome to the Berlin office.", "given"),
        ("Ann can be called at home on Sundays.", "Ann can't be called at home on Sundays.", "given"),
        ("Ann cannot be called at home on Sundays.", "Ann can be called at home on Sundays.", "given"),
        ("Ann can be called at home on Sundays.", "Ann cannot be called at home on Sundays.", "given"),
        ("Ann never eats fish at the office with Ben.", "Ann eats fish at the office with Ben.", "given"),
        ("Ann writes the parser of the service in C.", "Ann writes the parser of the service in C++.", "given"),
        ("Ann arbeitet am Freitag zu Hause.", "Ann arbeitet zu Hause außer am Freitag.", "given"),
        ("Ann arbeitet zu Hause außer am Freitag.", "Ann arbeitet zu Hause am Freitag.", "given"),
        ("Ann meets Ben for lunch.", "Ann meets Ben for lunch at two.", "given"),
        ("Ann meets Ben for lunch at two.", "Ann meets Ben for lunch.", "repeated"),
        ("tea " * 1_000 + "green", "tea " * 1_000 + "black", "given"),
        ("word " * 3 + " ".join(f"other{each}" for each in "abcdefghijklmn"), "word", "given"),
    ],
)
def test_repeats(one, other, expected):
    """A memory that adds no word to a better one is given once; a name, a number or a denial makes it another one."""
    assert {1: "given", 2: expected} == reasons([hit(1, 0.9, one), hit(2, 0.7, other)])


def test_what_the_conversation_says():
    """A memory that the conversation holds is passed over, and the next ones take its place."""
    assert {1: "said", 2: "given", 3: "given", 4: "given", 5: "weak"} == reasons(hits(0.9, *[0.3] * 4), said={1})


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("what books has melanie read?", MANY),
        ("how many trips did we make?", MANY),
        ("list the open tasks", MANY),
        ("welche bücher hat melanie gelesen?", MANY),
        ("wie viele reisen haben wir gemacht?", MANY),
        ("我们去过哪些城市?", MANY),
        ("他一共读了几本书?", MANY),
        ("what is the deadline of atlas?", ORDINARY),
        ("what does ann drink?", ORDINARY),
        ("welcher zweig wird ausgeliefert?", ORDINARY),
        ("账单从哪个分支发布?", ORDINARY),
        ("where did i use to live before?", PAST),
        ("what was the limit as of march?", PAST),
        ("wo habe ich früher gewohnt?", PAST),
        ("我以前住在哪里?", PAST),
        ("what do we use to deploy containers?", ORDINARY),
        ("which branch is used to deploy?", ORDINARY),
        ("how do i change my password?", ORDINARY),
        ("remind me before lunch", ORDINARY),
        ("how long until the release?", ORDINARY),
        ("do you have any more ideas?", ORDINARY),
        ("where is my old laptop?", ORDINARY),
        ("what did ann paint?", ORDINARY),
        ("what is the limit as of now?", ORDINARY),
        ("bevor ich gehe: wo wohne ich?", ORDINARY),
        ("我对什么过敏?", ORDINARY),
        ("which editor did we use to have?", PAST),
        ("what did i change in march?", PAST),
        ("until when did i work at acme?", PAST),
        ("remember where i lived before?", PAST),
        ("where don't we ship any more?", PAST),
        ("where did i live last year?", PAST),
        ("in 2024, where did i live?", PAST),
        ("where did i live in june 2025?", PAST),
        ("where did i live on 1 june 2025?", PAST),
        ("wo wohnte ich im juni 2025?", PAST),
        ("wo war ich am 1. juni 2025?", PAST),
        ("三个月前我住在哪里?", PAST),
        pytest.param("7" * 200_000, ORDINARY, id="many digits"),
        ("where did i work two years ago?", PAST),
        ("what was my old address?", PAST),
        ("what was my last job?", PAST),
        ("wo habe ich letztes jahr gewohnt?", PAST),
        ("was war meine alte adresse?", PAST),
        ("wo wohnte ich vor zwei jahren?", PAST),
        ("wie hiess mein alter chef?", PAST),
        ("我去年住在哪里?", PAST),
        ("我住过哪里?", PAST),
        ("gilt die fassung von mai?", ORDINARY),
        ("wie hoch ist die fassade?", ORDINARY),
        ("fass die offenen punkte zusammen", MANY),
        ("这本书多少钱?", ORDINARY),
        ("有多少人?", MANY),
        ("我的电话号码是多少?", ORDINARY),
        ("what is the list price of atlas?", ORDINARY),
    ],
)
def test_kinds_of_questions(prompt, expected):
    """Lists, counts and questions for the past are known in English, German and Chinese."""
    assert expected == kind_of(prompt)


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
