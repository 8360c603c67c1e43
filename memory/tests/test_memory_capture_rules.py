"""What the rules find in messages, in three languages."""

from pathlib import Path

import pytest
from case_files import rows
from hypothesis import given
from hypothesis import strategies as st

from beaver_memory.capture.features import Features
from beaver_memory.capture.records import KINDS, LONGEST, Utterance
from beaver_memory.capture.rules import ASKED, RuleExtractor, asks_to_remember
from beaver_memory.capture.sentences import sentences, without_private
from beaver_memory.capture.short_statements import acknowledges
from beaver_memory.capture.vocabulary import vocabulary_of

DATA = Path(__file__).with_name("data") / "capture"
RULES = RuleExtractor()


def found(*texts, voice="user", external=False):
    """Return kind and text of each candidate of a message."""
    said = [Utterance(text=text, voice=voice, external=external) for text in texts]
    return [(each.kind, each.text) for each in RULES.extract(said).candidates]


@pytest.mark.shows("003-009", "003-010", "003-011", "003-012", "003-067", "003-068", "003-069")
@pytest.mark.parametrize(("text", "kind"), rows(DATA / "kinds.jsonl", "text", "kind"))
def test_kinds(text, kind):
    """A statement of each kind becomes one candidate of that kind, in the words of the user."""
    assert found(text) == [(kind, text)]


@pytest.mark.shows("003-006", "003-014", "003-070", "003-105")
@pytest.mark.parametrize(
    "text",
    [
        "", "ok", "Thanks, great!", "Yes", "Danke, super!", "好的，谢谢", "lol", "What is the capital of France?",
        "Wow, that's awesome!", "Can you help me with that?", "Wie geht es dir?", "你好", "Hello there, how are you today?",
        "```python\nmy_name = 'I prefer tabs and my sister Anna moved to Lisbon'\n```",
        "> I prefer tabs over spaces, always, in every project of mine",
        "<private>My sister Anna moved to Lisbon in March 2024 with her two kids.</private>",
        "<private>I prefer tabs over spaces in every Python file that I write",
    ],
)  # fmt: skip
def test_nothing_to_keep(text):
    """Acknowledgements, greetings, plain questions, code, quotes and private spans yield nothing."""
    assert found(text) == []


@pytest.mark.shows("003-070")
@pytest.mark.parametrize(
    "text", ["Verstanden, alles klar, passt.", "Worked, understood, agreed.", "好的，明白了，收到，没问题"]
)
def test_acknowledgements(text):
    """An acknowledgement yields nothing, however little confidence is asked for, and whatever it answers."""
    said = [Utterance(text="Did the new build work for you?", voice="assistant"), Utterance(text=text)]
    assert RuleExtractor(least_confidence=0).extract(said).candidates == ()


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Remember that the wifi code is blue-heron.", "the wifi code is blue-heron."),
        ("please remember: trains leave at nine", "trains leave at nine"),
        ("Merk dir, dass Paul montags nie kann.", "Paul montags nie kann."),
        ("请记住：会议室在三楼", "会议室在三楼"),
    ],
)
def test_asked_for(text, kept):
    """A statement that the user asks to remember is kept whatever its length, without the request."""
    (candidate,) = RULES.extract([Utterance(text=text)]).candidates
    assert (candidate.text, candidate.confidence, candidate.explicit) == (kept, ASKED, True)


def test_a_question_is_not_a_request_to_remember():
    """`Do you remember ...?` asks, and yields nothing."""
    assert found("Do you remember that?") == []


@pytest.mark.parametrize(
    "text",
    [
        "Where did I live last year?", "Do we use Docker?", "When is my dentist appointment on Monday?",
        "Wo habe ich letztes Jahr gewohnt?", "Benutzen wir in Köln noch Docker und Jenkins?", "我去年住在哪里？",
    ],
)  # fmt: skip
def test_a_short_question_is_no_statement(text):
    """A short question that tells nothing yields nothing, although it is about the speaker's own matters."""
    extracted = RULES.extract([Utterance(text=text)])
    assert ([*extracted.candidates], [*extracted.weak]) == ([], [])


def test_a_long_question_tells_what_the_speaker_works_on():
    """A question of many words about the speaker's own matters is a fact."""
    text = "How do I connect my Flask 2.3 budget tracker for our sports club in Graz to PostgreSQL 15 in March?"
    assert found(text) == [("fact", text)]


def test_statement_before_a_request():
    """Of a sentence that asks, the statement stays and the request goes."""
    text = "I'm building a budget tracker with Flask 2.3 and SQLite for my sister, can you help me plan it?"
    assert found(text) == [("fact", "I'm building a budget tracker with Flask 2.3 and SQLite for my sister")]


@pytest.mark.shows("003-006", "003-067", "003-105")
def test_sentences_of_their_own():
    """A decision in a longer message is a candidate of its own, and chatter beside it is left out."""
    text = "Thanks! My team in Oslo has seven people since March. We decided to drop Jira for Linear. Great!"
    assert sorted(found(text)) == [
        ("decision", "We decided to drop Jira for Linear."),
        ("fact", "My team in Oslo has seven people since March."),
    ]


@pytest.mark.shows("003-006", "003-014", "003-105", "004-118")
def test_voices():
    """Only users and documents are quoted: no claim of the assistant and no output of a tool becomes a candidate."""
    text = "I prefer tabs over spaces in Python files."
    assert [found(text, voice=voice) for voice in ("assistant", "tool")] == [[], []]
    assert found(text, voice="document") == [("preference", text)]


def test_origin_and_place():
    """A candidate keeps the text that it rests on, its external origin, and the words of the question that it lacks."""
    said = [
        Utterance(text="Where does your sister live?", voice="assistant"),
        Utterance(text="My sister Anna moved to Lisbon in March 2024.", external=True, voice="document"),
    ]
    (candidate,) = RULES.extract(said).candidates
    assert (candidate.place, candidate.external, candidate.keywords) == (1, True, ("live",))


def test_answers():
    """A short statement that answers a question is kept, and the same words behind a statement are not."""
    said = "The choir bakes walnut bread and plum cake for hungry neighbours and tired cyclists."
    assert [found_after(before, said) for before in ("What does the choir do?", "The choir is new.")] == [
        [said], [],
    ]  # fmt: skip


def found_after(before, said):
    """Return the texts that are found in a message behind another one."""
    texts = [Utterance(text=before, voice="assistant"), Utterance(text=said)]
    return [each.text for each in RULES.extract(texts).candidates]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("I'm allergic to peanuts.", "preference"), ("Anna has moved to Porto.", "fact"), ("I'm vegan.", "fact"),
        ("The standup is at 10 now.", "fact"), ("Actually the deadline is Friday.", "fact"),
        ("Call me Jo.", "preference"), ("Use British spelling.", "preference"), ("Deploys happen on Wednesdays.", "fact"),
        ("Ich bin allergisch gegen Nüsse.", "preference"), ("Das Standup ist jetzt um 10.", "fact"),
        ("Antworte auf Deutsch.", "preference"), ("我搬到上海了。", "fact"), ("我吃素。", "fact"),
        ("会议改到周四了。", "fact"), ("请用中文回答。", "preference"),
    ],
)  # fmt: skip
def test_short_statements(text, kind):
    """A short sentence that holds beyond the day is kept however few its words, and also between small talk."""
    assert (found(text), found(f"Thanks! {text} Can you help me?")) == ([(kind, text)], [(kind, text)])


@pytest.mark.shows("003-014", "003-070")
@pytest.mark.parametrize(
    "text",
    [
        "I'm on my phone.", "It works now.", "Run it again.", "I prefer the first one.", "I have a question.",
        "The tests are green again.", "My screen froze.", "Use the other one.", "Is the deadline on Friday?", "Never mind.",
        "I have an idea, and I love it!", "Ich bin müde.", "Jetzt geht es.", "Das ist zu lang.", "我很累。", "再试一次。",
        "You live in Berlin.", "My sister lives in " + "a small house near the sea, " * 9,
    ],
)  # fmt: skip
def test_small_talk(text):
    """A short sentence about the moment, the listener or the task at hand is not kept."""
    assert [each for each in RULES.extract([Utterance(text=text)]).candidates if each.cues == ("lasting",)] == []


def test_short_statements_from_outside():
    """A short statement of a text from outside is not kept."""
    assert [found("I'm allergic to peanuts.", **each) for each in ({"external": True}, {"voice": "document"})] == [
        [],
        [],
    ]


def test_context_yields_nothing():
    """A text that was captured before is read as context only."""
    text = "My sister Anna moved to Lisbon in March 2024."
    assert RULES.extract([Utterance(text=text, is_context=True)]).candidates == ()


@pytest.mark.parametrize(
    "text",
    [
        "Antworte immer auf Deutsch.", "You must always answer in French.", "You should never use emojis in answers.",
        "Sprich mich immer mit Du an.", "Du sollst immer kurz antworten.", "Duze mich bitte immer.",
        "Verwende nie Emojis.", "Plane mir nie etwas am Sonntag.", "Lass mir immer zwei Tage Zeit.", "Erkläre mir Code immer Schritt für Schritt.", "Halte deine Antworten kurz.",
        "请总是用中文回答。", "你必须一律用中文回答。", "以后价格一律含税。", "不要在周日给我安排会议。",
    ],
)  # fmt: skip
def test_a_short_instruction_steers_the_agent(text):
    """An instruction to the agent is found in each language, and known as one, whatever its kind."""
    assert [each.steers_agent for each in RULES.extract([Utterance(text=text)]).candidates] == [True]


@pytest.mark.parametrize(
    "text",
    [
        "The response time of the shop is 200 ms.", "Never been to Kyoto, but I love Japanese food.",
        "Don't like mushrooms, and I am allergic to peanuts.", "We always deploy the shop on Tuesdays.",
        "Immer wenn ich nach Wien fahre, besuche ich meine Schwester.", "我们部署的时候一律用蓝绿发布。",
    ],
)  # fmt: skip
def test_a_statement_with_words_of_an_instruction(text):
    """A statement that begins with a word of an instruction, or speaks of responses, does not steer the agent."""
    assert [each.steers_agent for each in RULES.extract([Utterance(text=text)]).candidates] == [False]


def test_instructions_to_the_agent():
    """A candidate says whether it tells the agent how to behave."""
    texts = ("Always answer in short sentences without emojis.", "We never deploy the shop on Fridays after lunch.")
    said = [Utterance(text=text) for text in texts]
    by_place = {each.place: each.steers_agent for each in RULES.extract(said).candidates}
    assert by_place == {0: True, 1: False}


@pytest.mark.shows("003-071")
def test_doubt():
    """A statement that the user doubts is less certain than the same one without doubt."""
    sure, doubtful = (
        RULES.extract([Utterance(text=text)]).candidates[0].confidence
        for text in ("We decided to use Redis for sessions.", "Maybe we decided to use Redis for sessions.")
    )
    assert doubtful < sure


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("my sister lives in Oslo", "english"),
        ("meine Schwester wohnt in Oslo und ist nicht da", "german"),
        ("我姐姐住在奥斯陆", "chinese"),
        ("a1 b2", "english"),
        ("", "english"),
    ],
)
def test_language(text, language):
    """The language of a text selects its vocabulary, and English is the default."""
    assert vocabulary_of(text).name == language


@pytest.mark.parametrize(
    "text",
    [
        "Do not remember this: my salary is 90000 euros.", "My salary is 90000 euros. Please don't store that.",
        "Don't remember that my sister Anna moved to Lisbon.", "Off the record: my sister Anna moved to Lisbon.",
        "Merk dir das nicht: Meine Schwester Anna ist nach Lissabon gezogen.",
        "Bitte nicht merken: Meine Schwester Anna ist nach Lissabon gezogen.",
        "请不要记住：我去年三月搬到柏林的一家医院当护士。", "别记住：我去年三月搬到柏林的一家医院当护士。",
        "別記住：我去年三月搬到柏林的一家医院当护士。", "请勿记录：我去年三月搬到柏林的一家医院当护士。",
        *(f"My sister Anna moved to Lisbon in March. {request} this." for request in (
            "Please dont remember", "DON\u2019T REMEMBER", "Never remember", "Should not memorise", "You shouldnt remember",
            "No need to remember")),
    ],
)  # fmt: skip
def test_a_request_not_to_remember(text):
    """A message whose user asks not to remember it yields nothing, and asks for nothing to be remembered."""
    assert not found(text)
    assert not asks_to_remember(text)


@pytest.mark.parametrize(
    "text",
    [
        "I don't remember that my sister Anna moved to Lisbon in March.", "Never store the passwords of staging in git.",
        "Don't forget that my sister Anna moved to Lisbon in March.", "Merk dir, dass ich nicht gern nach Rom fliege.",
        "别忘了我去年三月搬到柏林。",
    ],
)  # fmt: skip
def test_other_negations(text):
    """A denial, a rule and a request not to forget are statements."""
    assert found(text)


def test_private_spans():
    """A private span is removed with its text, and an open one removes the rest."""
    assert without_private("a <private>b</private> c <PRIVATE>d") == "a   c  "
    assert without_private("a <private>b <private>c</private> d</private> e") == "a   e"
    assert without_private("a <private class='x'>b</private> c") == "a   c"


def test_confidence_follows_the_features():
    """A message without features is not kept, and one with all good features is."""
    assert Features().confidence < 0.1
    assert Features(substance=1, own_substance=1, own=1, event=1, moment=1, name=1).confidence > 0.9


@pytest.mark.shows("003-071")
def test_a_message_of_little_confidence():
    """A message whose features do not reach the least confidence is not kept, and is without such a bound."""
    said = [Utterance(text="The weather looks rather nice this afternoon.")]
    assert [0, 1] == [len(each.extract(said).candidates) for each in (RULES, RuleExtractor(least_confidence=0))]


@given(st.lists(st.text(max_size=300), max_size=4))
def test_any_text(texts):
    """Any texts give candidates within the bounds, each from a text that was given."""
    for each in RULES.extract([Utterance(text=text) for text in texts]).candidates:
        assert each.kind in KINDS
        assert 0 < len(each.text) <= LONGEST
        assert each.place < len(texts)


@given(st.text(alphabet="a.!? \n`>~-<privte/>1我。", max_size=200))
def test_sentences_of_any_text(text):
    """Sentences hold letters or digits, no line breaks, and are read without an error."""
    for each in sentences(text):
        assert any(map(str.isalnum, each.text))
        assert "\n" not in each.text
    acknowledges(text)
