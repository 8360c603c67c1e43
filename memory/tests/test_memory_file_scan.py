"""A text is found in a file in whatever form it is written there."""

import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaver_memory.runtime.file_scan import AT_ONCE, Trace, files_below, needles_of, traces_in

TEXT = 'Zwölf Qwertzings "here"'
NEEDLES = needles_of(TEXT, stem="qwertz", hashes=[2**60 + 5])


@pytest.mark.parametrize(
    ("content", "form"),
    [
        (TEXT.encode(), "as it is"),
        (TEXT.upper().replace("Ö", "ö").encode(), "case-folded"),
        (b'["Zw\\u00f6lf Qwertzings \\"here\\""]', "escaped"),
        (TEXT.encode("utf-16-le"), "UTF-16"),
        (TEXT.encode("utf-16-be"), "UTF-16, big-endian"),
        (b"the QWERTZ", "stemmed"),
        (b"x" + (2**60 + 5).to_bytes(8, "little"), "indexed"),
        (b"head" + gzip.compress(TEXT.encode(), mtime=0), "compressed, as it is"),
        (zlib.compress(TEXT.encode(), 1) + b"tail", "compressed, as it is"),
        (zlib.compress(b"y" * 900_000 + TEXT.encode(), 9)[:-4], "compressed, as it is"),
        (b"n" * (AT_ONCE - 4) + TEXT.encode(), "as it is"),
    ],
)
def test_every_form_is_found(tmp_path, content, form):
    """A text is found as it is, in other case or coding, by its stem and term, compressed, and across parts."""
    path = tmp_path / "file"
    path.write_bytes(content)

    assert Trace(path=path, form=form) in traces_in([path], NEEDLES)


@given(content=st.binary(max_size=200) | st.binary(max_size=60).map(lambda more: b"\x1f\x8b\x08" + more))
def test_other_bytes_are_no_trace(tmp_path_factory, content):
    """No bytes without the text are taken for it, whether or not they look compressed."""
    path = tmp_path_factory.getbasetemp() / "other"
    path.write_bytes(content)

    assert [] == traces_in([path], NEEDLES)


def test_files_below_places(tmp_path):
    """Each file is read once, also one that is named itself, without folders that are left out, and gone files."""
    for name in ("a/one", "a/models/big", "two"):
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_bytes(b"")
    files = files_below([tmp_path / "a", tmp_path, tmp_path / "two", tmp_path / "none"], leave_out=["models"])

    assert [tmp_path / "a/one", tmp_path / "two"] == files
    assert [] == traces_in([*files, tmp_path / "none"], NEEDLES)
