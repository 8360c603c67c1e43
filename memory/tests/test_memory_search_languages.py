"""German and Chinese are searched as English is: by forms of a word, without the words that are in every text."""

import pytest

from beaver_memory.embedding.calibration import UNKNOWN, knows, scale_of
from beaver_memory.embedding.catalog import KNOWN
from beaver_memory.embedding.factory import onnx_identity
from beaver_memory.embedding.protocol import Identity
from beaver_memory.search.terms import Analyser, unpack

ANALYSER = Analyser()
E5 = onnx_identity(KNOWN["e5-small"])
REMOTE = Identity(provider="openai", model="text-embedding-3-small", dimensions=1536)


@pytest.mark.parametrize(
    ("query", "memory"),
    [
        ("Welche Häuser?", "Das Haus ist alt."),
        ("Wann ging er?", "Er ist gegangen, und zwar früh."),
        ("Wer läuft?", "Ich bin gelaufen."),
        ("Was hat sie gekauft?", "Sie kauft es."),
        ("Wer hat angerufen?", "Ich werde dich anrufen."),
        ("Wann wurde es abgeholt?", "Wir müssen es abholen."),
        ("Welche Straße?", "In welcher STRASSE?"),
        ("Wer arbeitet?", "Sie arbeitete nicht."),
        ("Wo lebt sie?", "Wir leben in Graz."),
    ],
)
def test_forms_of_a_word_meet(query, memory):
    """Plurals, strong and weak verbs, verbs with a prefix, and umlauts."""
    wanted = ANALYSER.query(query)

    assert wanted
    assert {*wanted} <= {*ANALYSER.terms(memory)}


@pytest.mark.parametrize("query", ["Wie ist das mit mir und der?", "Was haben wir denn da?", "这是什么?", "他们的呢?"])
def test_words_that_are_in_every_text(query):
    """Function words of German and idle characters of Chinese find nothing."""
    assert [] == ANALYSER.query(query)


@pytest.mark.parametrize("query", ["running", "Werner", "hat", "runs in the van of Werner"])
def test_german_memories_for_other_queries(query):
    """A German memory has the terms of its words in English too, for a query that is not German."""
    memory = "Das ist der Hut: hat running runs in the van of Werner"

    assert {*ANALYSER.query(query)} <= {*ANALYSER.terms(memory)}


def test_the_length_of_a_german_memory():
    """Its length is the number of its words with a German term, each of which counts once."""
    (passage,) = unpack(ANALYSER.pack(["Ich habe zwei Hunde und die Hunde bellen."])[0])

    assert 4 == passage.length
    assert [1, 2] == sorted({*passage.counts.tolist()})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Wie heißt mein Hund?", "german"),
        ("我妹妹的狗叫什么?", "chinese"),
        ("Docker 容器怎么启动不了?", "chinese"),
        ("What does 王丽华 like to drink?", "other"),
        ("What is my dog called?", "other"),
        ("", "other"),
    ],
)
def test_the_language_of_a_query(text, expected):
    """Frequent words show that a query is German, and most of its letters that it is Chinese."""
    assert expected == ANALYSER.language(text)


def test_scales_by_language():
    """e5-small knows no Chinese, and its cosines of German texts lie closer together; other models are not affected."""
    scales = [scale_of(E5, "german"), scale_of(E5), scale_of(REMOTE, "german"), scale_of(None, "german")]

    assert (0.84, 0.79, UNKNOWN, UNKNOWN) == (scales[0].apart, scales[1].apart, *scales[2:])
    assert [False, True, True, True] == [
        knows(E5, "chinese"), knows(E5, "german"), knows(E5, "other"), knows(REMOTE, "chinese"),
    ]  # fmt: skip
