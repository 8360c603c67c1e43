"""Blocks: a search finds what scoring each unit finds, filters agree with the store, and merging changes nothing."""

import contextlib
import math
import string
from unittest import mock

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaver_memory.search import lexical
from beaver_memory.search.block import COLUMNS, NONE
from beaver_memory.search.block_builder import build, newest
from beaver_memory.search.block_merge import merge
from beaver_memory.search.dates import as_date
from beaver_memory.search.snapshot import part_of
from beaver_memory.search.terms import Analyser, hash_of, passages, unpack
from beaver_memory.store.protocol import IndexRow

WORDS = tuple(string.ascii_lowercase[:12])
ANALYSER = Analyser()

texts = st.lists(st.sampled_from([word * 3 for word in WORDS]), min_size=1, max_size=12).map(" ".join)


def row(id_, text, **fields):
    """Return a row as a store gives it."""
    cut = passages(text)
    terms, length = ANALYSER.pack(cut)
    labels = fields.pop("labels", ("store:private", "type:fact", "scope:global"))
    return IndexRow(id=id_, version=id_, terms=terms, length=length, labels=labels, **fields)


rows = st.lists(texts, max_size=40).map(lambda found: [row(place + 1, text) for place, text in enumerate(found)])
queries = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(
    lambda words: [hash_of(word * 3) for word in dict.fromkeys(words)]
)


def scored(block, terms, allowed):
    """Return what each unit scores that scores at all, by looking at each of them."""
    all_units = np.arange(block.size)
    found = lexical.score(block, terms, all_units)
    if allowed is not None:
        found = np.where(allowed, found, 0)
    return {int(unit): float(found[unit]) for unit in all_units if found[unit] > 0}


@given(rows, queries, st.integers(1, 12), st.sampled_from([0, 1 << 17]), st.data())
def test_the_best_are_the_best_of_all(found, query, limit, exhaustive, data):
    """A search of a block finds the best units with the same scores as scoring every unit."""
    block = build(found)
    mask = data.draw(st.none() | st.lists(st.booleans(), min_size=block.size, max_size=block.size))
    allowed = None if mask is None else np.array(mask, bool)
    (terms,) = lexical.weigh(query, [part_of(block)])
    with mock.patch.object(lexical, "EXHAUSTIVE", exhaustive):
        answer = lexical.search(block, terms, allowed=allowed, limit=limit)
    expected = scored(block, terms, allowed)
    best = sorted(expected, key=lambda unit: (-expected[unit], -unit))[:limit]
    assert (best, [expected[unit] for unit in best]) == (answer.units.tolist(), answer.scores.tolist())


@pytest.mark.shows("003-093")
def test_scores_are_bm25():
    """A score is what the formula says, of the counts, the lengths and their mean."""
    block = build([row(1, "aaa aaa bbb"), row(2, "bbb ccc ccc ccc ddd")])
    (terms,) = lexical.weigh([hash_of("aaa"), hash_of("bbb")], [part_of(block)])
    mean = 2 ** (round(64 * math.log2(4)) / 64)
    norm = [1.2 * (1 - 0.75 + 0.75 * length / mean) for length in (3, 5)]
    rare, common = (math.log(1 + (2 + lexical.FEW - had + 0.5) / (had + 0.5)) for had in (1, 2))
    first = rare * 2 * 2.2 / (2 + norm[0]) + common * 2.2 / (1 + norm[0])
    second = common * 2.2 / (1 + norm[1])
    assert [first, second] == pytest.approx(lexical.score(block, terms, np.arange(2)).tolist(), rel=1e-5)


def test_what_all_words_of_a_query_weigh():
    """Each counts by its rarity, one that occurs nowhere like one that occurs once, and of many only the rarest."""
    part = part_of(build([row(1, "aaa bbb"), row(2, "bbb ccc")]))
    once, twice = (math.log(1 + (2 + lexical.FEW - had + 0.5) / (had + 0.5)) for had in (1, 2))

    def whole(*words):
        return lexical.weigh([hash_of(word) for word in words], [part])[0].whole

    assert [once + twice, once + once, twice] == pytest.approx([whole("aaa", "bbb"), whole("aaa", "zzz"), whole("bbb")])
    assert lexical.ENOUGH * once == pytest.approx(whole("bbb", *(f"z{number}" for number in range(50))))
    assert [] == lexical.weigh([hash_of("aaa")], [])


def test_dates_of_a_query_are_not_part_of_its_whole():
    """A date ranks memories, and tells nothing about whether one of them says what the query asks for."""
    part = part_of(build([row(1, "aaa bbb"), row(2, "bbb ccc")]))
    alone, dated = (lexical.weigh([hash_of("aaa"), *more], [part])[0].whole for more in ([], [as_date(7)]))
    assert alone == dated


def test_a_single_word_in_common_counts_for_half():
    """By words alone, one of three words counts for half of its weight; two of them, or one of two, count in full."""
    block = build([row(1, "aaa bbb"), row(2, "bbb ccc")])

    def covered(*words, by_words=True):
        (terms,) = lexical.weigh([hash_of(word) for word in words], [part_of(block)])
        return lexical.coverage(block, terms, np.arange(2), by_words=by_words).tolist()

    once, twice = (math.log(1 + (2 + lexical.FEW - had + 0.5) / (had + 0.5)) for had in (1, 2))
    assert [pytest.approx(once + twice), pytest.approx(twice / 2)] == covered("aaa", "bbb", "zzz")
    assert [pytest.approx(once + twice), pytest.approx(twice)] == covered("aaa", "bbb", "zzz", by_words=False)
    assert [pytest.approx(once + twice), pytest.approx(twice)] == covered("aaa", "bbb")


def same(one, other):
    """Assert that two blocks hold the same."""
    for name in COLUMNS:
        assert one.columns[name].tolist() == other.columns[name].tolist(), name
    for group in ("terms", "labels", "sessions"):
        for field in attrs.fields(type(one.terms)):
            expected, actual = (getattr(getattr(block, group), field.name) for block in (one, other))
            assert expected.tolist() == actual.tolist(), (group, field.name)
    assert (one.earlier.tolist(), one.later.tolist()) == (other.earlier.tolist(), other.later.tolist())


sessions = st.lists(st.tuples(texts, st.sampled_from(["", "s", "t"]), st.integers(0, 5)), max_size=30)


@given(sessions, st.data())
def test_merging_is_building_at_once(said, data):
    """A block merged from others, in any order, equals the block built from the same rows."""
    all_rows = [
        row(place + 1, text, session=session, created=float(when)) for place, (text, session, when) in enumerate(said)
    ]
    which = data.draw(st.lists(st.integers(0, 2), min_size=len(all_rows), max_size=len(all_rows)))
    gone = data.draw(st.lists(st.booleans(), min_size=len(all_rows), max_size=len(all_rows)))
    groups = [[each for each, group in zip(all_rows, which, strict=True) if group == number] for number in range(3)]
    blocks = [build(group) for group in groups]
    dropped = {each.id for each, is_gone in zip(all_rows, gone, strict=True) if is_gone}
    keep = [~np.isin(block.columns["ids"], list(dropped)) for block in blocks]
    same(build([each for each in all_rows if each.id not in dropped]), merge(blocks, keep))


def test_merging_in_small_steps(monkeypatch):
    """Lists that are moved a few at a time are the same as those moved at once."""
    found = [row(number, f"word{number % 7} word{number % 3} all") for number in range(1, 60)]
    blocks = [build(found[::2]), build(found[1::2])]
    expected = merge(blocks, [None, None])
    monkeypatch.setattr("beaver_memory.search.block_merge.AT_ONCE", 10)
    same(expected, merge(blocks, [None, None]))


def test_nothing_is_a_block():
    """An empty block can be searched and merged."""
    block = build([])
    (terms,) = lexical.weigh([1, 2], [part_of(block)])
    assert [] == lexical.search(block, terms, allowed=None, limit=3).units.tolist()
    assert 0 == merge([block, block], [None, None]).size


def test_terms_that_cannot_be_read():
    """A memory with unreadable packed terms stays in the block, without terms."""
    block = build([attrs.evolve(row(1, "aaa"), terms=b"xyz"), row(2, "aaa")])
    (terms,) = lexical.weigh([hash_of("aaa")], [part_of(block)])
    assert ([1, 2], [1]) == (
        block.columns["ids"].tolist(),
        lexical.search(block, terms, allowed=None, limit=3).units.tolist(),
    )


def test_a_long_text_is_several_units():
    """Each passage is a unit of its memory, and neighbours are those in the session, in order of time."""
    long = ". ".join(f"sentence {number} says {word * 40}" for number, word in enumerate(WORDS * 6))
    count = len(passages(long))
    block = build([row(1, long, session="s", created=2.0), row(2, "aaa", session="s", created=1.0)])
    assert count > 2
    assert [*range(count), 0] == block.columns["passages"].tolist()
    assert [count, *range(count - 1), NONE] == block.earlier.tolist()
    assert [*range(1, count), NONE, 0] == block.later.tolist()


def test_the_newest_row_counts():
    """Of several rows of one memory the newest counts."""
    assert {1: 3, 2: 1} == {
        id_: found.version
        for id_, found in newest(
            [
                attrs.evolve(row(1, "a"), version=2),
                attrs.evolve(row(1, "b"), version=3),
                attrs.evolve(row(2, "c"), version=1),
            ]
        ).items()
    }


@given(st.binary(max_size=60))
def test_any_bytes_as_terms(data):
    """Whatever stands for packed terms, it is read or refused as such, and a block is made of it."""
    with contextlib.suppress(ValueError):
        unpack(data)
    assert build([attrs.evolve(row(1, "aaa"), terms=data)]).size >= 1
