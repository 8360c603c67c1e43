"""Merging: nothing that anybody wrote is lost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaver_hooks_curated.merging import merge, restore

ENTRIES = st.lists(st.sampled_from("abcdefgh"), unique=True, max_size=6).map(tuple)


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "expected"),
    [
        (("a",), ("a",), ("a", "x"), ("a", "x")),
        (("a",), ("a", "b"), ("a", "x"), ("a", "x", "b")),
        (("a", "b"), ("b",), ("a", "b", "x"), ("b", "x")),
        (("a", "b"), ("a", "B"), ("x", "b"), ("x", "B")),
        (("a",), ("a", "b"), (), ("b",)),
    ],
)
def test_merge(base, ours, theirs, expected):
    """Their text holds, with our removals and additions since the common base."""
    assert expected == merge(base, ours, theirs)


@given(ENTRIES, ENTRIES, ENTRIES)
def test_merge_loses_no_addition(base, ours, theirs):
    """Whatever either side added is there, and what both left alone too."""
    merged = set(merge(base, ours, theirs))
    # An entry that they brought back and we had removed is one that we removed.
    added = (set(ours) - set(base)) | (set(theirs) - set(base))

    assert added | (set(base) & set(ours) & set(theirs)) == merged


def test_restore_without_recent_changes():
    """Where nothing was written for a while, a hand that deletes an entry deletes it."""
    assert ("a",) == restore(("a", "b"), ("a",), [])


def test_restore_what_was_not_seen():
    """Changes made moments before are put back into a text that rests on the state before them."""
    recent = [(("a",), ("a", "b")), (("a", "b"), ("b",))]

    assert ("x", "b") == restore(("b",), ("a", "x"), recent)
