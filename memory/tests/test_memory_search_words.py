"""What words are found by: forms of a word meet, and what only looks alike does not."""

import threading

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from beaver_memory.search import terms as terms_module
from beaver_memory.search.german import TELLING
from beaver_memory.search.language import Language
from beaver_memory.search.terms import Analyser, hash_of, name_hash, unpack
from beaver_memory.search.words import STOP_WORDS, irregular_forms, terms_of, words_of
from beaver_toolkit.words import LONGEST


def plain(text):
    """Return what the words of a text are found by, without stemming."""
    return [term for word in words_of(text) for term in terms_of(word, str)]


def meet(one, other):
    """Return whether all that one text is found by is found in another one."""
    analyser = Analyser()
    wanted = analyser.terms(one)
    return bool(wanted) and set(wanted) <= set(analyser.terms(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("sell", "Ann SOLD it"), ("went", "going"), ("buys", "bought"), ("children", "a child"), ("women", "woman's"),
        ("found", "finds"), ("knives", "knife"), ("forgotten", "forget"), ("rewrote", "rewrite"), ("Teeth", "tooth"),
        ("Melanie", "Melanie's"), ("Melanie", "MELANIE\u2019S"), ("melanie's", "Melanie"),
        ("cafe", "café"), ("café", "cafe\u0301"), ("NAÏVE", "naive"), ("strasse", "Straße"), ("fine", "ﬁne"),
        ("parse config", "parseConfig"), ("parseconfig", "parseConfig"), ("config", "PARSE_CONFIG"),
        ("parse_config", "parse_config()"), ("HTTP server", "HTTPServer"), ("url", "URLs"), ("URLs", "url"),
        ("known", "well-known"), ("well-known", "well known"), ("E1234", "error E1234."), ("王小明", "王小明住在"),
        ("小明", "王小明"), ("กำลัง", "เขากำลังกิน"), ("人々", "人々は"), ("हिन्दी", "(हिन्दी)"), ("שלום", "שָׁלוֹם"),
    ],
)  # fmt: skip
def test_what_meets(one, other):
    """Inflections, irregular forms, possessives, accents, parts of identifiers, and scripts without spaces."""
    assert meet(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("saw", "see"), ("left", "leave"), ("rose", "rise"), ("bit", "bite"), ("lives", "life"), ("Drew", "draw"),
        ("grandma", "grandmother"), ("two", "2"), ("people", "person"), ("better", "good"),
        ("sold_at", "sell_at"), ("E1234", "E1235"), ("हिन्दी", "हिन्द"), ("ur", "URLs"), ("3.5", "35"),
    ],
)  # fmt: skip
def test_what_does_not_meet(one, other):
    """Forms that mean something else, synonyms, numbers as words, other identifiers, other words of any script."""
    assert not meet(one, other)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Don't, can\u2019t, WON'T, isn't, what's, I'm, we've", []),
        ("MELANIE'S TVs, parseConfig's", ["melanie", "tvs", "parseconfig", "parse", "config"]),
        ("load_sold fooSold HTTPServer2 v1.2", ["load_sold", "load", "sold", "foosold", "foo", "sold",
                                               "httpserver2", "http", "server", "2", "v1", "2"]),
        ("北京 🎉 → x", ["北", "京", "北京", "🎉", "→", "x"]),
        ("iPhone McDonald", ["iphone", "phone", "mcdonald", "mc", "donald"]),
        ("___ '' - \u0301", []),
    ],
)  # fmt: skip
def test_words(text, expected):
    """Words, their parts and symbols, in order; words that are in every text are left out."""
    assert expected == plain(text)


def test_names_are_no_forms():
    """A name in a query keeps its form: the name `Sung` has no stem of `sing`."""
    analyser = Analyser()
    assert [name_hash("Sung Lee"), hash_of("called")] == analyser.names("Sung's called")
    assert [hash_of("sung"), 0] == [name_hash("Sung"), name_hash("...")]


def test_the_table_of_forms():
    """Each form has one base, which is no form itself, and neither is in every text or the same for the stemmer."""
    forms = irregular_forms("english")
    assert set() == forms.keys() & set(forms.values())
    assert set() == (forms.keys() | set(forms.values())) & STOP_WORDS
    # Every entry is needed: without the table, form and base do not meet.
    bare = Language("english", STOP_WORDS, str)
    assert [] == [form for form, base in forms.items() if bare.root(form) == bare.root(base)]
    assert all(form.isalpha() and form.islower() for form in forms)


pieces = st.one_of(
    st.text(max_size=12),
    st.sampled_from(["sold", "Ann's", "parseConfig", "王小明", "e\u0301", "\u0301", "'s", "a_b", "\x1c"]),
)


@given(st.lists(pieces, max_size=8), st.sampled_from([" ", "\n", "\t", "\u2003", "\x1f", "", "."]))
@example(["e", "\u0301"], " ")
def test_pieces_are_read_as_the_whole(parts, between):
    """Reading a text piece by piece finds what reading it word by word finds, known already or not."""
    text, analyser = between.join(parts), Analyser()
    assume(TELLING.isdisjoint(text.split()))
    found = [analyser.terms(text), analyser.terms(text)]
    words = [number for word in words_of(text) for number in Analyser().terms(word)]
    assert [words, words] == found


@given(st.lists(st.text(max_size=80), max_size=4), st.text(max_size=20))
def test_packing(texts, extra):
    """Packed terms unpack to each passage's terms and counts, and the first passage has the extra terms too."""
    assume(TELLING.isdisjoint(" ".join([*texts, extra]).split()))
    analyser = Analyser()
    packed, length = analyser.pack(texts, extra)
    found = unpack(packed)
    terms = [analyser.terms(text) for text in texts]
    assert ([*map(len, terms)], sum(map(len, terms))) == ([each.length for each in found], length)
    for place, each in enumerate(terms):
        wanted = each + (analyser.terms(extra) if place == 0 else [])
        assert {term: min(255, wanted.count(term)) for term in wanted} == dict(
            zip(found[place].hashes.tolist(), found[place].counts.tolist(), strict=True)
        )


def test_counts_are_bounded():
    """A word that is there a thousand times counts for 255."""
    assert [255] == unpack(Analyser().pack(["tea " * 1_000])[0])[0].counts.tolist()


def test_what_is_long():
    """Of a long word its beginning counts, in small letters or not; it is not remembered, and costs little."""
    analyser = Analyser()
    for unit in ("x", "X", "é"):
        word = unit * 10_000
        assert [hash_of(unit.lower().replace("é", "e") * LONGEST)] == analyser.terms(word)
    assert {} == analyser._english._known


def test_what_is_remembered_is_bounded(monkeypatch):
    """Many words take no more memory than some."""
    monkeypatch.setattr(terms_module, "_KNOWN", 10)
    analyser = Analyser()
    for number in range(50):
        assert [hash_of(f"w{number}x")] == analyser.terms(f"w{number}x")
        assert [hash_of(f"w{number}x")] == analyser.names(f"w{number}x")
    assert 10 >= max(len(analyser._english._known), len(analyser._names))


def test_words_of_a_query():
    """The words of a query are those that it is found by, as they stand, each once."""
    assert ["Melanie's", "sold", "piano"] == Analyser().words("Has Melanie's sold the sold piano?")


def test_threads_share_an_analyser():
    """Several threads that read the same texts find the same."""
    texts = [f"running{number % 7} runs sold {number}" for number in range(200)]
    expected = [Analyser().terms(text) for text in texts]
    analyser, found = Analyser(), []
    threads = [threading.Thread(target=lambda: found.append(list(map(analyser.terms, texts)))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [expected] * 4 == found


def test_numbers_are_those_of_the_index():
    """Terms of a query are the numbers that are packed."""
    analyser = Analyser()
    packed, _ = analyser.pack(["tea moon"])
    assert analyser.query("tea moon") == np.array(unpack(packed)[0].hashes).tolist()
