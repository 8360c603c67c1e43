"""Checksums of rows."""

from hypothesis import given
from hypothesis import strategies as st

from beaver_toolkit.row_checksums import row_checksum

ROWS = st.lists(st.none() | st.integers() | st.binary(max_size=9) | st.text(st.characters(), max_size=9), max_size=4)


def test_the_layout_is_fixed() -> None:
    """The checksum of a row is the same in every version."""
    assert (2_935_544_014, 0) == (row_checksum(7, "caf\u00e9", b"\xff", None, "\ud800"), row_checksum())


@given(ROWS, ROWS)
def test_other_values_have_another_checksum(
    one: list[str | bytes | int | None], other: list[str | bytes | int | None]
) -> None:
    """Rows have one checksum only if their values and types are equal, also where a text moves to the next column."""
    same = [(type(each), each) for each in one] == [(type(each), each) for each in other]
    assert same == (row_checksum(*one) == row_checksum(*other))
