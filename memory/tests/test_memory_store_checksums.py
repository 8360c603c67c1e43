"""Checksums of stored rows."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaver_memory.errors import DamagedRow
from beaver_memory.records import Owner
from beaver_memory.store.checksums import (
    CHECKED,
    NUMBERS,
    TEXTS,
    access_part,
    change_checksum,
    memory_checksum,
    texts_checksum,
    vector_checksum,
)

ANN = Owner(tenant="acme", user="ann")
AT = 1_700_000_000_000_000
ROW: dict[str, Any] = {
    "id": 7,
    "pinned": 0,
    "created_at": AT,
    "expires_at": None,
    "valid_from": None,
    "valid_until": None,
    "deleted_at": None,
    "updated_at": AT,
    "mention_count": 1,
    "token_count": 6,
    "superseded_by": None,
    "doubted_by": None,
    "length": 4,
    "confidence": 1.0,
    "importance": 0.5,
    "last_accessed_at": None,
    "uid": b"\x03" * 16,
    "hash": b"\x01" * 32,
    "terms": b"\x02\x03",
    **dict.fromkeys(TEXTS, ""),
    **dict.fromkeys(("tags", "keywords", "related_files", "related_people", "facts"), "[]"),
    "store": "private",
    "type": "fact",
    "scope": "global",
    "title": "Caf\u00e9: 1000 euros",
}


def checksum(**changes: Any) -> int:
    row = ROW | changes
    return memory_checksum(ANN, [row[name] for name in CHECKED])


def test_the_layout_is_fixed() -> None:
    """The checksums of a memory, an embedding, an entry of a history and a summary are the same in every version and store."""
    assert (
        checksum(),
        vector_checksum(7, "model", b"\0\x3c"),
        change_checksum(7, "UPDATE", AT, "{}", '{"title": "x"}'),
        texts_checksum(ANN, "caf\u00e9", "caf\u00e9".encode(), 7),
    ) == (2_919_762_936, 3_145_382_667, 1_122_819, 637_461_917)


def test_texts_may_be_bytes() -> None:
    """A store that reads its texts as bytes gets the same checksum."""
    assert checksum(**{name: ROW[name].encode() for name in TEXTS}) == checksum()


OTHER = st.one_of(
    st.tuples(st.sampled_from(NUMBERS[:13]), st.integers(-(2**62), 2**62)),
    st.tuples(st.sampled_from(("confidence", "importance")), st.floats(0, 1)),
    st.tuples(st.sampled_from(("uid", "hash", "terms")), st.binary(max_size=40)),
    st.tuples(st.sampled_from(TEXTS), st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))),
)


@given(OTHER)
def test_any_other_value_changes_the_checksum(change: tuple[str, Any]) -> None:
    """A change of any column changes the checksum, also one that moves text from a column to its neighbour."""
    name, value = change
    assert (checksum(**{name: value}) == checksum()) == (value == ROW[name])


@given(st.sampled_from(TEXTS), st.integers(0, 200))
def test_every_flipped_bit_changes_the_checksum(name: str, place: int) -> None:
    """One flipped bit of a text gives another checksum, whether or not it is still a text."""
    texts = {each: (ROW[each] + "text").encode() for each in TEXTS}
    flipped = bytearray(texts[name])
    flipped[place // 8 % len(flipped)] ^= 1 << place % 8
    assert checksum(**(texts | {name: bytes(flipped)})) != checksum(**texts)


def test_none_and_the_epoch_differ() -> None:
    """A moment that is missing has another checksum than a moment at the epoch."""
    names = ("expires_at", "valid_from", "valid_until", "deleted_at", "last_accessed_at", "superseded_by", "doubted_by")
    assert [checksum(**{name: 0}) == checksum() for name in names] == [False] * 7


def test_another_owner_has_another_checksum() -> None:
    """A row under another tenant or user fails its checksum."""
    values = [ROW[name] for name in CHECKED]
    owners = (ANN, Owner(tenant="acme", user="bob"), Owner(tenant="acmea", user="nn"), Owner(user="ann"))
    assert len({memory_checksum(owner, values) for owner in owners}) == 4


@given(st.one_of(st.none(), st.integers(-(2**55), 2**57)), st.one_of(st.none(), st.integers(-(2**55), 2**57)))
def test_a_recall_changes_the_checksum_without_the_row(before: int | None, after: int | None) -> None:
    """The checksum after a recall follows from the one before it, and fits into a signed integer of 64 bits."""
    then = checksum(last_accessed_at=before)
    assert then ^ access_part(before) ^ access_part(after) == checksum(last_accessed_at=after)
    assert -(2**63) <= then < 2**63


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("id", "seven"), ("created_at", None), ("updated_at", 2**63), ("hash", None), ("title", None),
        ("terms", "text"), ("evidence", 7), ("superseded_by", "7"), ("superseded_by", 7.0), ("uid", None),
    ],
)  # fmt: skip
def test_a_value_of_another_type_is_damage(name: str, value: object) -> None:
    """A value that its column never holds is an error, so a reader treats the row as damaged."""
    with pytest.raises(DamagedRow):
        checksum(**{name: value})
