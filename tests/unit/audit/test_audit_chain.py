"""The chain names the first bad record, whatever was done to it."""

from hypothesis import given
from hypothesis import strategies as st

from beaver_hooks.audit.chain import (
    GENESIS,
    ChainCheck,
    ChainedEvent,
    Head,
    canonical,
    chain_key,
    identifier_key,
    identify,
    link,
    verify,
)

KEY = chain_key(b"k" * 32)
texts = st.text(st.characters(codec=None), max_size=8)
optional_texts = st.none() | texts
fields = st.tuples(texts, texts, optional_texts, optional_texts, optional_texts, optional_texts, texts)
logs = st.lists(fields, min_size=1, max_size=6)


def chained(log, key=KEY):
    """Return the records of a whole chain."""
    records, mac = [], GENESIS
    for seq, each in enumerate(log, 1):
        mac = link(key, mac, seq, each)
        records.append(ChainedEvent(seq=seq, fields=each, mac=mac))
    return records


def head_of(records):
    return Head(seq=records[-1].seq, mac=records[-1].mac) if records else None


def bad(records, first_bad, reason):
    """Return the verdict that all records before `first_bad` are good."""
    good = records[: first_bad - 1]
    return ChainCheck(ok=False, checked=len(good), first_bad=first_bad, reason=reason, head=head_of(good))


def plain(count):
    return [(f"2026-01-0{number}", "turn_opened", None, None, "t", None, "{}") for number in range(1, count + 1)]


@given(logs)
def test_a_chain_that_nobody_touched_is_whole(log):
    """A chain with any content verifies, and ends in its own head."""
    records = chained(log)

    expected = ChainCheck(ok=True, checked=len(records), head=head_of(records))

    assert expected == verify(records, KEY)
    assert expected == verify(records, KEY, expected_head=head_of(records))


def test_an_empty_chain_is_whole():
    """An empty chain verifies, unless the caller expects a head."""
    assert ChainCheck(ok=True, checked=0) == verify([], KEY)
    assert bad([], 1, "missing") == verify([], KEY, expected_head=Head(seq=3, mac="x"))


@given(logs, st.data())
def test_a_changed_record_is_named(log, data):
    """Any other content under the old code is `changed`, and the verdict gives its number."""
    records = chained(log)
    index = data.draw(st.integers(0, len(records) - 1))
    other = data.draw(fields.filter(lambda each: each != records[index].fields))
    tampered = [*records]
    tampered[index] = ChainedEvent(seq=index + 1, fields=other, mac=records[index].mac)

    assert bad(records, index + 1, "changed") == verify(tampered, KEY)


@given(logs, st.data())
def test_a_missing_record_is_named(log, data):
    """A gap is named by the number that is gone; a cut end shows only against a head kept elsewhere."""
    records = chained(log)
    index = data.draw(st.integers(0, len(records) - 1))
    rest = [*records[:index], *records[index + 1 :]]

    assert bad(records, index + 1, "missing") == verify(rest, KEY, expected_head=head_of(records))
    if index == len(records) - 1:
        assert ChainCheck(ok=True, checked=index, head=head_of(rest)) == verify(rest, KEY)


@given(st.lists(fields, min_size=2, max_size=6), st.data())
def test_records_in_another_order_are_bad(log, data):
    """Records that come in another order are never good beyond the first that is out of place."""
    records = chained(log)
    shuffled = data.draw(st.permutations(records).filter(lambda each: each != records))
    place = next(index for index, (one, two) in enumerate(zip(records, shuffled, strict=True)) if one != two)

    verdict = verify(shuffled, KEY)

    assert (False, place, place + 1) == (verdict.ok, verdict.checked, verdict.first_bad)


def test_a_record_that_comes_twice_is_reordered():
    """A number that was there before is `reordered`."""
    records = chained(plain(3))

    assert verify([records[0], records[1], records[0]], KEY).reason == "reordered"


def test_a_record_with_a_code_of_its_own_is_forged():
    """New content with a code that the next record does not vouch for is `forged`."""
    records = chained(plain(4))
    forged = chained([*plain(1), ("2026-01-02", "nothing_happened", None, None, None, None, "{}")], b"other key")
    tampered = [records[0], forged[1], *records[2:]]

    assert bad(records, 2, "forged") == verify(tampered, KEY)


def test_exchanged_records_with_their_numbers_put_right_are_forged():
    """Two records with exchanged contents are forged, because the code of a record covers its number."""
    one, two, three, four = chained(plain(4))
    tampered = [
        one,
        ChainedEvent(seq=2, fields=three.fields, mac=three.mac),
        ChainedEvent(seq=3, fields=two.fields, mac=two.mac),
        four,
    ]

    assert bad([one], 2, "forged") == verify(tampered, KEY)


def test_a_chain_written_anew_with_the_right_key_shows_against_a_head():
    """A chain rewritten with the right key verifies, and fails only against a head that was kept elsewhere."""
    kept = head_of(chained(plain(2)))
    anew = chained([("x", *each[1:]) for each in plain(3)])

    assert verify(anew, KEY).ok
    assert bad(anew, 2, "not the expected head") == verify(anew, KEY, expected_head=kept)


def test_another_key_verifies_nothing():
    """The first record is bad under another key."""
    assert verify(chained(plain(2)), chain_key(b"z" * 32)).first_bad == 1


@given(st.integers(1, 9), fields, st.integers(1, 9), fields)
def test_different_records_have_different_bytes(seq, one, other_seq, other):
    """The canonical bytes are the record: equal only for equal records."""
    assert ((seq, one) == (other_seq, other)) == (canonical(seq, one) == canonical(other_seq, other))


@given(texts, texts)
def test_an_identifier_stands_for_one_value(one, other):
    """Equal values have equal short hashes, different ones different hashes, and another key gives other hashes."""
    key = identifier_key(b"k" * 32)

    assert (one == other) == (identify(key, one) == identify(key, other))
    assert identify(key, one) != identify(identifier_key(b"z" * 32), one)
    assert (len(identify(key, one)), identify(key, one)[:2]) == (2 + 24, "h:")
    assert key != chain_key(b"k" * 32)
