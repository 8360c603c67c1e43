"""Which texts count as injected, and which of them the memory keeps."""

import threading
from datetime import UTC, datetime

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaver_hooks.turns import echo_filter
from beaver_hooks.turns.echo_filter import InjectedMemory

TEXT = (
    "Ada moved to Lisbon in the spring of 2024. She works on tide models for the harbour there, "
    "keeps two cats called Fig and Plum, and would rather be written to than called."
)
CHINESE = "我上个星期搬到了里斯本，现在在港口做潮汐模型。我养了两只猫，喜欢别人给我写信。"
HINDI = "मुझे हर सुबह चाय के साथ अख़बार पढ़ना अच्छा लगता है और शाम को नदी के किनारे टहलना"


@attrs.define
class _HandClock:
    seconds: float = 0.0

    def now(self):
        return datetime(2026, 1, 1, tzinfo=UTC)

    def monotonic(self):
        return self.seconds


def _memory(*texts, session="s", **options):
    memory = InjectedMemory(clock=options.pop("clock", _HandClock()), **options)
    for number, text in enumerate(texts):
        memory.remember(session, f"t{number}", [text])
    return memory


def _halves(text):
    words = text.split()
    return " ".join(words[: len(words) // 2]), " ".join(words[len(words) // 2 :])


@pytest.mark.parametrize(
    "copy",
    [
        TEXT,
        TEXT.replace(" ", "\n"),
        "> " + TEXT.replace(". ", ".\n> "),
        "- " + TEXT.replace(", ", "\n  * "),
        "1. " + TEXT.replace(", ", "\n2. "),
        TEXT.upper(),
        TEXT.replace(",", " –").replace(".", "!"),
        TEXT.replace("a", "a\u00ad").replace(" ", " \u200b"),
        "".join(chr(ord(char) + 0xFEE0) if char.isalnum() else char for char in TEXT),
        _halves(TEXT)[0],
        _halves(TEXT)[1],
        "You told me that " + TEXT + " Is that right?",
        "moved to Lisbon in the spring of 2024",
        "tide models for the harbour",
        "Fig and Plum",
    ],
)
def test_copies_are_recognised(copy):
    """Reflowed, quoted, listed, re-cased and partial copies count as injected."""
    assert _memory(TEXT).was_injected("s", copy)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "...",
        "Lisbon",
        "two cats",
        "cats two called",
        "Plum and Fig",
        "Ada moved to Porto in the autumn of 2025 and has no cats.",
        "She works on tide models in the north of France now",
        TEXT + " " + "And this is what I have to say about something else entirely, at much greater length. " * 6,
    ],
)
def test_other_texts_are_not(text):
    """Too little, another order, other facts in similar words and a quotation inside a long answer are no copies."""
    assert not _memory(TEXT).was_injected("s", text)


@pytest.mark.parametrize(
    ("text", "copy"),
    [
        (CHINESE, CHINESE),
        (CHINESE, CHINESE.replace("，", ",\n> ")),
        (CHINESE, "用户说：" + CHINESE),
        (CHINESE, CHINESE[:20]),
        (CHINESE, "现在在港口"),
        (HINDI, HINDI.replace(" ", "\n")),
        ("می‌خواهم کتاب‌ها را ببینم و بخوانم", "میخواهم کتابها را ببینم"),
        ("ฉันย้ายไปอยู่ลิสบอนเมื่อปีที่แล้ว", "ฉันย้ายไปอยู่ ลิสบอนเมื่อปีที่แล้ว"),
        ("uses Python 3.11 和 SQLite 数据库 every day", "Uses Python 3.11 和 sqlite 数据库 every day!"),
    ],
)
def test_copies_in_other_scripts_are_recognised(text, copy):
    """Scripts without spaces are compared by characters, others with their vowel signs."""
    assert _memory(text).was_injected("s", copy)


@pytest.mark.parametrize("text", ["猫", "里斯", "我今天在家里看了一整天的书，哪里也没有去。", "港口猫星期信"])
def test_other_texts_in_other_scripts_are_not(text):
    """A few characters in common are not a copy."""
    assert not _memory(CHINESE).was_injected("s", text)


def test_half_of_a_longer_text_is_enough():
    """A text of eight words or more needs half of its grams, a shorter one all of them."""
    memory = _memory("a b c d e f g h i j")

    answers = {
        text: memory.was_injected("s", text) for text in ("a b c d e f w x y z", "a b c d e f g w x y z", "a b c d e x")
    }
    assert answers == {"a b c d e f w x y z": False, "a b c d e f g w x y z": True, "a b c d e x": False}


def test_sessions_know_nothing_of_each_other():
    """A text that was injected in one session is new in another."""
    memory = _memory(TEXT)

    assert not memory.was_injected("other", TEXT)
    assert len(memory) == 1


def test_only_the_last_turns_count():
    """The oldest turn makes room; turns without any text take no place."""
    memory = _memory("one two three", "four five six", turns=2)
    memory.remember("s", "empty", ["", ""])
    before = memory.was_injected("s", "one two three")
    memory.remember("s", "t9", ["seven eight nine"])

    assert (before, memory.was_injected("s", "one two three")) == (True, False)
    assert memory.was_injected("s", "four five six")


def test_a_turn_can_be_added_to():
    """Remembering a turn again adds to it, also after a question about it."""
    memory = _memory("one two three", turns=1)
    assert memory.was_injected("s", "one two three")
    memory.remember("s", "t0", ["four five six"])

    assert memory.was_injected("s", "one two three")
    assert memory.was_injected("s", "four five six")


def test_texts_of_a_turn_are_apart():
    """Words from the end of one text and the start of the next are not a sequence."""
    memory = InjectedMemory(clock=_HandClock())
    memory.remember("s", "t", ["one two three", "four five six"])

    assert not memory.was_injected("s", "two three four five")


def test_the_session_used_least_recently_makes_room():
    """Asking counts as use."""
    memory = InjectedMemory(sessions=2, clock=_HandClock())
    for session in ("a", "b"):
        memory.remember(session, "t", [TEXT])
    memory.was_injected("a", TEXT)
    memory.remember("c", "t", [TEXT])

    assert [memory.was_injected(session, TEXT) for session in "abc"] == [True, False, True]
    assert len(memory) == 2


def test_all_sessions_together_are_bounded(monkeypatch):
    """Beyond the number of characters held, the sessions used least recently are forgotten."""
    monkeypatch.setattr(echo_filter, "_CHARACTERS_HELD", 3 * len(TEXT))
    memory = InjectedMemory(clock=_HandClock())
    for session in "abcd":
        memory.remember(session, "t", [TEXT])

    assert [memory.was_injected(session, TEXT) for session in "abcd"] == [False, True, True, True]


def test_a_turn_is_bounded():
    """A turn remembers a limited number of characters and of hashes."""
    memory = InjectedMemory(clock=_HandClock())
    memory.remember("s", "t", ["一" * 40_000, TEXT])
    memory.remember("s", "u", [" ".join(chr(0x4E00 + number) for number in range(20_000))])

    assert not memory.was_injected("s", TEXT)
    assert max(len(turn.hashes) for turn in memory._held["s"].turns.values()) <= 8_192


def test_idle_sessions_are_swept():
    """The sweep forgets only sessions without any use for longer than the limit."""
    clock = _HandClock()
    memory = InjectedMemory(clock=clock, idle_seconds=10)
    memory.remember("old", "t", [TEXT])
    clock.seconds = 5
    memory.remember("young", "t", [TEXT])
    clock.seconds = 10.5
    memory.sweep()

    assert [memory.was_injected(session, TEXT) for session in ("old", "young")] == [False, True]
    assert len(memory) == 1


def test_a_session_can_be_forgotten():
    """Forgetting a session removes all of its texts, and forgetting it twice is no error."""
    memory = _memory(TEXT)
    memory.forget("s")
    memory.forget("s")

    assert (len(memory), memory._characters, memory.was_injected("s", TEXT)) == (0, 0, False)


def test_the_texts_are_let_go_once_asked():
    """After the first question only hashes are held."""
    memory = _memory(TEXT)
    memory.was_injected("s", "anything but that")

    (turn,) = memory._held["s"].turns.values()
    assert not turn.texts
    assert len(turn.hashes) > 0


def test_any_thread_may_ask():
    """Questions and new turns from several threads at once do not disturb each other."""
    memory = _memory(TEXT)
    answers = []

    def ask():
        for number in range(50):
            memory.remember("s", "t0", [f"number {number} of many"])
            answers.append(memory.was_injected("s", TEXT))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert answers == [True] * 200


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("tuvw"), st.text(max_size=9)), max_size=12))
def test_the_count_of_characters_is_what_is_held(calls):
    """The count of characters is right after any remembering and evicting."""
    memory = InjectedMemory(turns=2, sessions=2, clock=_HandClock())
    for session, turn_id, text in calls:
        memory.remember(session, turn_id, [text])

    assert memory._characters == sum(turn.characters for held in memory._held.values() for turn in held.turns.values())
    assert len(memory) <= 2


@given(st.text(st.characters(exclude_categories=())), st.text(st.characters(exclude_categories=())))
def test_any_text_can_be_asked_about(remembered, asked):
    """No text breaks it, and the same text is found whenever it has three words."""
    memory = _memory(remembered)

    assert memory.was_injected("s", asked) in {True, False}
    assert memory.was_injected("s", remembered) == (len(echo_filter._words(remembered)) >= 3)
