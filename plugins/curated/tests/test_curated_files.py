"""Files: whole or not at all, private, and unreadable is not empty."""

import os
import resource
import stat
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaver_hooks_curated import files, folders
from beaver_hooks_curated.errors import MemoryUnreadable, MemoryUnwritable
from beaver_hostspecs import BelieveAll
from beaver_toolkit import files as toolkit

ALL = BelieveAll()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "MEMORY.md"


@pytest.fixture
def tiny_disk():
    """Lets this process write no file beyond 1,000 bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_read(path):
    """A file is read with the time of its last write, a missing one is not there."""
    assert files.FileContent() == files.read(path, ALL)
    path.write_bytes(b"\xef\xbb\xbfone")

    assert files.FileContent(text="one", written=path.stat().st_mtime, there=True) == files.read(path, ALL)


@pytest.mark.parametrize(
    ("content", "problem", "remedy"),
    [
        (b"tea\ncaf\xe9", "is not UTF-8 (line 2)", "open it in an editor and save it as UTF-8"),
        (b"one\0two", "holds zero bytes", "fix it by hand or restore it from a backup"),
        (b"\0" * 9, "holds zero bytes", "fix it by hand or restore it from a backup"),
    ],
)
def test_damaged(path, content, problem, remedy):
    """A damaged file is refused with its name and a remedy, and stays unchanged."""
    path.write_bytes(content)

    with pytest.raises(MemoryUnreadable) as caught:
        files.read(path, ALL)

    assert str(caught.value) == (
        f"The memory file {path} {problem}. It was not changed: {remedy}, or move it away to start with an empty one."
    )
    assert content == path.read_bytes()


def test_no_memory_files(path, tmp_path):
    """Links, folders, pipes and giants are no memory files."""
    (tmp_path / "target").write_text("secret")
    path.symlink_to(tmp_path / "target")
    os.mkfifo(tmp_path / "pipe")
    with (tmp_path / "giant").open("wb") as giant:
        giant.truncate(files.LARGEST + 1)

    problems = []
    for each in (path, tmp_path, tmp_path / "pipe", tmp_path / "giant", tmp_path / "target" / "below"):
        with pytest.raises(MemoryUnreadable) as caught:
            files.read(each, ALL)
        problems.append(str(caught.value).split(". ")[0].removeprefix(f"The memory file {each} "))

    none = "is not a memory file"
    large = "is too large (4,194,305 of 4,194,304 bytes)"
    assert ["is a symbolic link", none, none, large, "cannot be opened (Not a directory)"] == problems


def test_failing_disk():
    """A disk that fails while it reads makes the file unreadable."""
    with pytest.raises(MemoryUnreadable, match=r"cannot be read \(Input/output error\)"):
        files.read(Path("/proc/self/mem"), ALL)


def test_replace(path):
    """`replace` returns the old text, makes the new file private and leaves no temporary file."""
    replaced = [files.replace(path, text, ALL) for text in ("one", "two", "three")]

    assert [None, "one", "two"] == [each and each.text for each in replaced]
    assert ("three", 0o600, [path]) == (path.read_text(), stat.S_IMODE(path.stat().st_mode), [*path.parent.iterdir()])


def test_replace_of_something_unreadable(path):
    """A file that cannot be read is in place again, and the error names it."""
    path.write_bytes(b"\xff")
    with pytest.raises(MemoryUnreadable, match=f"The memory file {path} is not UTF-8"):
        files.replace(path, "two", ALL)

    assert (b"\xff", [path]) == (path.read_bytes(), [*path.parent.iterdir()])


@pytest.mark.parametrize("newest", [None, "newest"])
def test_an_edit_while_an_unreadable_text_is_put_back(path, monkeypatch, newest):
    """A text that an editor saves meanwhile stays in place, and if the editor removes it, the old one is restored."""
    path.write_bytes(b"\xff")
    exchange, edits = toolkit.exchange, iter([False, True])

    def slow(one, other):
        if next(edits, False):
            path.unlink()
            if newest:
                path.write_text(newest)
        return exchange(one, other)

    monkeypatch.setattr(toolkit, "exchange", slow)
    with pytest.raises(MemoryUnreadable):
        files.replace(path, "two", ALL)

    assert (newest.encode() if newest else b"\xff", [path]) == (path.read_bytes(), [*path.parent.iterdir()])


@pytest.mark.parametrize(
    ("text", "problem"),
    [("a\0b", "zero bytes"), ("a\ud800b", "a lone surrogate"), ("a" * (files.LARGEST + 1), "can be read")],
)
def test_unreadable_texts(path, text, problem):
    """A text that `read` would refuse is not written."""
    path.write_text("one")
    with pytest.raises(MemoryUnwritable, match=problem):
        files.replace(path, text, ALL)

    assert ("one", [path]) == (path.read_text(), [*path.parent.iterdir()])


@given(text=st.text(st.characters(codec="utf-8", exclude_characters="\0")))
def test_written_as_read(tmp_path_factory, text):
    """Any written text reads back unchanged, also with a leading byte order mark."""
    path = tmp_path_factory.getbasetemp() / "written"
    files.replace(path, text, ALL)

    assert text == files.read(path, ALL).text


def test_full_disk(path, tiny_disk):
    """A write to a full disk raises, keeps the old file and leaves no temporary file."""
    files.replace(path, "one", ALL)
    with pytest.raises(MemoryUnwritable, match="cannot be written"):
        files.replace(path, "x" * 2000, ALL)

    assert ("one", [path]) == (path.read_text(), [*path.parent.iterdir()])


def test_append(path):
    """Lines are appended, and a line that a crash has cut off stays separate."""
    files.append(path, ["one", "two"], ALL)
    with path.open("a") as file:
        file.write("torn")
    files.append(path, ["three"], ALL)

    assert ["one", "two", "torn", "three", ""] == files.read_lines(path, ALL)


def test_append_to_full_disk(path, tiny_disk):
    """Lines that do not fit on the disk are removed again."""
    files.append(path, ["one"], ALL)
    with pytest.raises(MemoryUnwritable):
        files.append(path, ["x" * 2000], ALL)

    assert "one\n" == path.read_text()


def test_sweep_and_remove(tmp_path, path):
    """Stray temporary files are removed, and other files stay."""
    (tmp_path / ".MEMORY.md.00ff.tmp").touch()
    path.write_text("one")

    assert (1, [path]) == (folders.sweep(tmp_path), [*tmp_path.iterdir()])
    files.remove(path)
    files.remove(path)
    assert [] == [*tmp_path.iterdir()]


def test_folders(tmp_path):
    """A folder is made private; a link in its place, or a file, is refused."""
    folders.make_folder(tmp_path / "a" / "b")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    (tmp_path / "file").touch()

    assert [0o700, 0o700] == [stat.S_IMODE((tmp_path / each).stat().st_mode) for each in ("a", "a/b")]
    for each, problem in (("link", "is a symbolic link"), ("file", "cannot be written")):
        with pytest.raises(MemoryUnwritable, match=problem):
            folders.make_folder(tmp_path / each)


def test_settling(path):
    """An empty file that is being written is read once it has text, and a long empty one is read as empty."""
    path.touch()
    filler = threading.Timer(0.02, path.write_text, ["one"])
    filler.start()

    assert "one" == files.read_settled(path, ALL).text
    filler.join()
    path.write_text("")
    os.utime(path, (time.time() - 60,) * 2)
    assert "" == files.read_settled(path, ALL).text
    path.unlink()
    assert files.FileContent() == files.read_settled(path, ALL)
