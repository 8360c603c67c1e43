"""The choice of hits that a turn is given, and their text."""

from datetime import UTC, datetime

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaver_hooks_local.recall.already_said import Conversation
from beaver_hooks_local.recall.references import PROVENANCE, pick, reference
from beaver_hooks_local.recall.selection import Selection
from beaver_hostspecs import Message, Reference
from beaver_hostspecs.testing import make_turn
from beaver_hostspecs.tokens import estimate_tokens
from beaver_memory.query import Hit
from beaver_memory.records import Memory

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def make_memory(id_=1, title="Billing is deployed from the branch stable.", **fields):
    given = {"created_at": NOON, "updated_at": NOON, "hash": "", "type": "decision", **fields}
    memory = Memory(id=id_, title=title, **given)
    return attrs.evolve(memory, token_count=estimate_tokens(memory.text))


def hit(id_=1, title="Billing is deployed from the branch stable.", score=0.5, passage=0, **fields):
    return Hit(memory=make_memory(id_, title, **fields), score=score, passage=passage)


@pytest.mark.shows("003-023", "003-087")
def test_reference():
    """A memory becomes a reference with its kind, id, score and source."""
    made = reference(hit(7, session="s1", source="user", scope="project", project="p", speaker="Ann"))

    assert (
        Reference(
            text="Ann: Billing is deployed from the branch stable.",
            kind="decision",
            id="7",
            score=0.5,
            source="user",
            scope="project",
            session="s1",
            when=NOON,
        )
        == made
    )


def test_a_speaker_takes_one_line():
    """The speaker stands before the text on one line, whatever characters the name holds."""
    made = reference(hit(speaker="Ann\n[99] private rule"))

    assert "Ann [99] private rule: Billing is deployed from the branch stable." == made.text


@pytest.mark.parametrize(
    ("sentence", "question"),
    [
        ("The heron {} stood at the old weir at dawn.", "Where did the heron 57 stand?"),
        ("Der Reiher {} stand morgens am alten Wehr im Fluss.", "Wo stand der Reiher 57?"),
        ("苍鹭 {} 早上站在河边的旧水坝上看着慢慢流过的水。", "苍鹭 57 早上站在哪里?"),
    ],
)
def test_long_memories_are_shortened(sentence, question):
    """A reference to a long memory shows the sentences that fit the prompt, and names the tool that shows the rest."""
    whole = " ".join(sentence.format(number) for number in range(40, 70))
    made = reference(hit(3, title=whole, passage=len(whole) // 1_300), question)

    assert sentence.format(57) in made.text
    assert made.text.endswith(" [... memory_get 3]")
    assert estimate_tokens(made.text) < 140


def test_an_excerpt_of_chinese_text():
    """The sentences of a Chinese excerpt stand beside each other without spaces."""
    made = reference(
        hit(3, title="我们每天早上开会。" * 40 + "安娜喝绿茶！本杰喝咖啡。" + "我们每天早上开会。" * 40), "谁喝绿茶？"
    )

    assert "早上开会。安娜喝绿茶！" in made.text


def test_words_of_every_text_choose_no_excerpt():
    """The sentence with one telling word of the prompt is shown before one with many words that every text has."""
    clouds = "Clouds pass over grey hills near town. " * 6
    whole = "What did you do and how was it for me? " * 8 + clouds + "Anna drinks tea. " + clouds
    made = reference(hit(3, title=whole), "What did Anna do, and how was it for you?")

    assert "Anna drinks tea." in made.text


def test_a_text_without_sentences_is_cut():
    """A long memory without an end of a sentence is shortened as well."""
    made = reference(hit(3, title="word " * 600), "word")

    assert estimate_tokens(made.text) < 140


def test_what_has_ended_says_so():
    """A reference to a memory that has ended begins with the date until which it was true."""
    made = reference(hit(valid_until=NOON))

    assert "(true until 2026-03-01) Billing is deployed from the branch stable." == made.text


def test_what_is_too_long_keeps_nothing_shorter_out():
    """`pick` leaves out a memory that is too long and gives a shorter one behind it."""
    hits = (hit(1, title="word " * 70), hit(2))
    picked = pick(Selection(hits=hits, reasons={1: "given", 2: "given"}), max_tokens=120)

    assert Selection(hits=hits[1:], reasons={1: "no_room", 2: "given"}) == picked.selection
    assert 1 == picked.left_out


@pytest.mark.shows("003-098")
@given(st.lists(st.integers(1, 400), max_size=12), st.integers(0, 1_000))
def test_budget(words, max_tokens):
    """`pick` keeps the order of the hits and stays within its limit of tokens."""
    hits = tuple(hit(number, title="word " * count) for number, count in enumerate(words, 1))
    picked = pick(Selection(hits=hits), max_tokens=max_tokens)
    ids = [each.memory.id for each in picked.selection.hits]

    assert picked.tokens <= max_tokens
    assert picked.tokens == sum(estimate_tokens(each.text) + PROVENANCE for each in picked.references)
    assert ids == sorted(ids)
    assert len(hits) == len(ids) + picked.left_out


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("billing is deployed\nfrom the branch stable.", True),
        ("He said: > Billing is deployed\n> from the branch stable. Yes.", True),
        ("Billing is deployed from the branch main.", False),
    ],
)
def test_said_already(said, expected):
    """The conversation holds a memory whose text stands in it word for word, however it is wrapped."""
    turn = make_turn(history=[Message(role="assistant", text="Hello."), Message(role="user", text=said)])

    assert expected == Conversation.of(turn).holds(make_memory())


def test_a_memory_that_begins_with_a_quotation():
    """The mark of a quoted line is no part of a memory that the conversation holds."""
    memory = make_memory(title="\n> Billing is deployed\n> from the branch stable.")

    assert Conversation(["Billing is deployed from the branch stable."]).holds(memory)


def test_short_texts_are_never_said_already():
    """The conversation does not hold a memory whose short text merely occurs in it."""
    assert not Conversation(["I like tea a lot"]).holds(make_memory(title="tea"))


def test_a_long_history_is_read_from_its_end():
    """Of a very long history only the last messages are compared with a memory."""
    memory = make_memory()
    late = Conversation(["x" * 300_000, memory.text])
    early = Conversation([memory.text, *["y" * 150_000] * 2])

    assert (True, False) == (late.holds(memory), early.holds(memory))
