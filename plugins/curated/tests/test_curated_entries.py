"""The file format: parsing, joining and counting of entries."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from beaver_hooks_curated.entries import Page, Target, handle, holds_delimiter, join, parse, size, tidy
from beaver_hooks_curated.threat_scan import clean

ENTRIES = st.lists(
    st.text(st.characters(codec="utf-8", exclude_characters="\r"), min_size=1)
    .map(str.strip)
    .filter(lambda text: text and not holds_delimiter(text))
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ()),
        ("one", ("one",)),
        ("one\n§\ntwo", ("one", "two")),
        ("  one \n§\n\n§\n two\n", ("one", "two")),
        ("one\n§\none", ("one",)),
        ("price § 3\n§\ntwo", ("price § 3", "two")),
        ("one\r\n§\r\ntwo", ("one", "two")),
        ("one\ntwo", ("one\ntwo",)),
        ("foo\n§", ("foo",)),
        ("foo\n§\n§\nbar", ("foo", "bar")),
        ("foo\n§ \nbar", ("foo", "bar")),
        ("§\nfoo", ("foo",)),
    ],
)
def test_parse(text, expected):
    """Entries are split at every line that is a section sign alone, stripped, without empty ones and duplicates."""
    assert expected == parse(text)


@given(ENTRIES)
def test_round_trip(entries):
    """Parsing returns the same entries that were joined."""
    assert tidy(entries) == parse(join(tidy(entries)))


@given(st.text())
def test_parse_is_stable(text):
    """Parsing a joined page again changes none of its entries."""
    once = parse(text)

    assert once == parse(join(once))


@pytest.mark.parametrize(
    ("content", "expected"), [("one", False), ("a § b", False), ("§", True), ("a\n § \nb", True), ("a\n§", True)]
)
def test_delimiter(content, expected):
    """A line with nothing but the section sign would split an entry."""
    assert expected is holds_delimiter(content)


def test_page():
    """Usage counts the delimiters, and is never above 100 percent."""
    page = Page(target=Target.MEMORY, entries=("a" * 500, "b" * 597), limit=2200)

    assert (1100, "50% — 1,100/2,200 chars") == (page.size, page.usage)
    assert "100% — 3/1 chars" == Page(target=Target.USER, entries=("abc",), limit=1).usage


def test_small_things():
    """Files are named after their targets, handles are short and constant, and an empty page has size zero."""
    assert ("MEMORY.md", "USER.md", 0) == (Target.MEMORY.file_name, Target.USER.file_name, size(()))
    assert (8, True) == (len(handle("x")), handle("x") == handle("x"))


LINES = st.lists(st.sampled_from(["§", " §", "§\t", "a", "b § c", "", "  ", "\ufeff§", "§\x85", "a\r§"]))


@given(LINES.map("\n".join), st.text(st.characters(codec="utf-8")).map(clean).map(str.strip))
def test_adding_an_entry(text, entry):
    """An entry added to any file reads back as that entry, and the other entries stay."""
    assume(entry and not holds_delimiter(entry))
    entries = parse(text)

    assert (entries, tidy((*entries, entry))) == (parse(join(entries)), parse(join((*entries, entry))))
    assert not any(holds_delimiter(each) for each in entries)
