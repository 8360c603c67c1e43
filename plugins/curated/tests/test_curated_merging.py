"""Merging: no entry of either writer is lost."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaver_hooks_curated.entries import Target
from beaver_hooks_curated.history import OUTSIDE, Change, merge, restore

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
    """Merging applies our removals and additions since the common base to their text."""
    assert expected == merge(base, ours, theirs)


@given(ENTRIES, ENTRIES, ENTRIES)
def test_merge_loses_no_addition(base, ours, theirs):
    """The merge holds every addition of either side, and the entries that both sides kept."""
    merged = set(merge(base, ours, theirs))
    # An entry that they brought back after we removed it stays removed.
    added = (set(ours) - set(base)) | (set(theirs) - set(base))

    assert added | (set(base) & set(ours) & set(theirs)) == merged


def change(before, after, action="add", *, slipped=False):
    when = datetime(2026, 1, 1, tzinfo=UTC)
    return Change(when=when, target=Target.USER, action=action, before=before, after=after, slipped=slipped)


ADDED, REMOVED = change(("a",), ("a", "b")), change(("a", "b"), ("b",), "remove")
TYPED, CORRECTED = change((), ("nu",), OUTSIDE), change(("a", "b"), ("a", "c"), OUTSIDE)


@pytest.mark.parametrize(
    ("found", "recent", "expected"),
    [
        (("a",), [], ("a",)),
        (("a", "x"), [ADDED, REMOVED], ("x", "b")),
        (("nuts", "tea"), [TYPED], ("nuts", "tea")),
        (("peas",), [TYPED], ("peas",)),
        (("peas",), [TYPED, change(("nu",), ("nu", "b"))], ("peas", "b")),
        (("a", "x"), [change(("a",), ("a", "m"), OUTSIDE, slipped=True)], ("a", "x", "m")),
        (("a", "x"), [ADDED, CORRECTED], ("a", "x")),
        (("a", "bmore"), [ADDED], ("a", "bmore")),
        (("b", "x"), [ADDED, REMOVED], ("b", "x")),
        (("a", "b and tea"), [change(("a", "b and tea"), ("a", "b"), "replace")], ("a", "b")),
        (("x",), [ADDED, change(("a", "b"), ("a", "b", "c"))], ("x", "b", "c")),
        (("x", "c"), [ADDED, change(("a", "b"), ("a", "b", "c"))], ("x", "c")),
    ],
)
def test_restore(found, recent, expected):
    """Only our changes that the writer cannot have seen are repeated, and never those of a user."""
    assert expected == restore(found, recent)
