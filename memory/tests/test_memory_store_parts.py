"""The small parts of the store: texts, moments, labels, pages."""

import contextlib
from datetime import UTC, datetime, timedelta, timezone
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st
from store_rows import rows_of

from beaver_memory.store.fingerprint import hash_of
from beaver_memory.store.people import folders, narrow_labels
from beaver_memory.store.sqlite import SqliteStore
from beaver_memory.testing.store_cases.kit import NOW, Disagreement, agree, holds, new, raises
from beaver_memory.texts import EARLIEST, LATEST, cleaned, micros, moment, packed, unpacked
from beaver_toolkit.sqlite.secure_delete import cleared


@given(st.text(st.characters()))
def test_cleaned_texts(text):
    """A cleaned text can be encoded, holds no NUL, is as long as before, and cleaning it again changes nothing."""
    found = cleaned(text)
    assert found.encode().decode() == found == cleaned(found)
    assert "\0" not in found
    assert len(text) == len(found)


@given(st.lists(st.text()))
def test_packed_lists(texts):
    """A list comes back as it was, cleaned."""
    assert tuple(map(cleaned, texts)) == unpacked(packed(texts))


@given(st.datetimes(timezones=st.timezones()))
def test_moments(when):
    """A moment comes back to the microsecond, in UTC; only what UTC has no year for is moved to its edge."""
    value = micros(when)
    assert EARLIEST <= value <= LATEST
    if EARLIEST < value < LATEST:
        assert when.astimezone(UTC) == moment(value)
    assert moment(value).utcoffset() == timedelta(0)


def test_moments_beyond_utc():
    """A moment of a far zone that UTC cannot show becomes the nearest that it can."""
    late = datetime.max.replace(tzinfo=timezone(timedelta(hours=-9)))
    assert datetime.max.replace(tzinfo=UTC) == moment(micros(late))


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a.py", []),
        ("src/a.py", ["src"]),
        ("src/b/a.py", ["src/b", "src"]),
        ("src/b/", ["src"]),
        ("/a/b", ["/a", "/"]),
        ("/a", ["/"]),
        ("/", []),
        ("a//b", ["a"]),
        ("//a", ["/"]),
    ],
)
def test_folders(path, expected):
    """A path lies in each folder above it."""
    assert expected == folders(path)


def test_labels_of_the_side_table():
    """Tags stand as they are, people folded, files with every folder above them; each once."""
    found = narrow_labels(("A", "A"), ("x/y", "x/z"), ("Ann", "ANN"))
    assert ["tag:A", "person:ann", "path:x/y", "path:x", "path:x/z"] == found


@pytest.mark.shows("002-007")
def test_hashes():
    """A hash is of title and facts with NUL between them, cleaned."""
    assert sha256(b"a\0b\0c").hexdigest() == hash_of("a", ("b", "c"))
    assert hash_of("a", ("b",)) != hash_of("ab", ())
    assert hash_of("\ufffd", ()) == hash_of("\0", ())


PAGE = bytes([13, 0, 0, 0, 2, 0, 30, 0]) + b"\0\x1e\0\x20" + b"left over from.." + b"\0\0" + b"cells"


def test_gaps_of_pages():
    """The gap of a page is cleared; its header, its list of cells and its cells stay; so do other pages."""
    assert PAGE[:12] + bytes(18) + PAGE[30:] == cleared(PAGE, first=False)
    head = b"h" * 100
    page = head + bytes([5, 0, 0, 0, 0, 0, 120, 0, 0, 0, 0, 9]) + b"leftover" + b"cells"
    assert head + page[100:112] + bytes(8) + b"cells" == cleared(page, first=True)
    for other in (b"\0" * 40, b"\x0d\0\0\xff\xff" + b"x" * 40, b"\x0d\0\0\0\0\0\0" + bytes(40), b"text" * 10):
        assert other == cleared(other, first=False)


def test_no_page_in_the_file_has_a_gap(tmp_path):
    """After many changes and a closing, no page of the file holds anything in its gap, and the file is whole."""
    path = tmp_path / "memory.db"
    with contextlib.closing(SqliteStore.open(path)) as store:
        for number in range(300):
            store.add([new(f"number {number * 7919 % 300}", narrative="x" * (number % 900), tags=("t",))], now=NOW)
        assert [] == store.check(None)
    content = path.read_bytes()
    pages = [content[start : start + 4096] for start in range(0, len(content), 4096)]
    assert pages == [cleared(page, first=number == 0) for number, page in enumerate(pages)]


def test_new_stores_of_a_process(tmp_path):
    """New stores equal each other, but for their identities."""
    paths = [tmp_path / name for name in ("first.db", "second.db")]
    identities = set()
    for path in paths:
        with contextlib.closing(SqliteStore.open(path)) as store:
            identities.add(store.identity)

    first, second = map(_description, paths)
    assert (2, first) == (len(identities), second)


def _description(path):
    """Return the schema of a store, and the rows that a new one has."""
    facts = "SELECT name, CASE name WHEN 'identity' THEN '' ELSE value END FROM store_facts"
    # SQLite drops its own table of numbers where no table needs it.
    schema = "SELECT name, sql FROM sqlite_schema WHERE name <> 'sqlite_sequence' ORDER BY name"
    statements = (schema, facts, "SELECT version FROM schema_version")
    words = ("SELECT * FROM indexed_words", "SELECT * FROM observations_fts_config")
    return [rows_of(path, each) for each in (*statements, *words, "PRAGMA application_id", "PRAGMA journal_mode")]


def test_the_kit_of_the_suite_disagrees():
    """What the cases are made of raises where something is not so."""
    with pytest.raises(Disagreement) as caught:
        agree(1, 2, "numbers")
    assert "numbers: expected 1, not 2" == str(caught.value)
    with pytest.raises(Disagreement) as caught:
        agree("x" * 5000, None)
    assert "expected 'xxx" == str(caught.value)[:13]
    with pytest.raises(Disagreement):
        holds(condition=False)
    with pytest.raises(Disagreement):
        raises(ValueError, list)
    raises(ValueError, lambda: int("x"))
