"""Counts the commits of a database, so that acknowledged commits that are missing later are noticed.

SQLite ends a log at the first page that fails its checksum, and says nothing of the commits behind it. Each commit
therefore raises a number in the database, its `user_version`. After the commit, which is durable then, the number is
written to a small file beside the database, with where the log ended. That file is not synced: it may be late, also
after a power failure, but it never has the number of a commit that was not durable.

The file has four places, which are used in turn, for the last commits, and four for the last complete checkpoints. Of
two processes that write at the same time, none hides a higher number of the other.
"""

import os
import struct
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple

from beaver_toolkit.files import open_regular, replace
from beaver_toolkit.locks import PRIVATE
from beaver_toolkit.sqlite.connections import Immediate
from beaver_toolkit.sqlite.errors import DatabaseError, driver

if TYPE_CHECKING:
    import apsw

_PLACE = struct.Struct(">QQQQ")
"""A number, the frames in the log, the checksum of the last of them, and the three combined."""

_PLACES = 4
_BYTES = _PLACES * _PLACE.size
_SEAL = 2**64 - 1

_DATABASE, _LOG = 0, 1
_NUMBER, _NUMBER_BYTES = 60, 4
"""Where the header of a database has its `user_version`."""

_SIZES, _SIZES_FORM = 16, struct.Struct(">H10xI")
"""Where the header of a database has the size of its pages and their number."""

_LARGEST_PAGE = 65_536
"""The size that the header writes as 1."""

_LOG_HEADER, _FRAME_HEADER = 32, 24
_CHECKSUM, _CHECKSUM_BYTES = 16, 8
"""Where the header of a frame has its checksum, which depends on all frames before it."""


class CountedTransaction(Immediate):
    """A transaction that counts its commit.

    Leaving it raises `DatabaseError` with the category `overwritten` if acknowledged commits are missing from what the
    connection sees; all of it is rolled back then.
    """

    __slots__ = ("_before", "_commits", "_number")

    def __init__(self, connection: "apsw.Connection", commits: "Commits") -> None:
        self.connection, self._commits, self._number = connection, commits, 0
        self._before = connection.total_changes()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Commit, and write down the number of the commit."""
        Immediate.__exit__(self, kind, error, traceback)
        if self._number:
            self._commits.acknowledge(self.connection, self._number)

    def before_commit(self) -> None:
        """Raise the number in the database."""
        if self.connection.total_changes() != self._before:
            self._number = self._commits.next_number(self.connection)
            self.connection.execute(f"PRAGMA user_version = {self._number}", can_cache=False)


class Mark(NamedTuple):
    """A commit or a checkpoint that was durable.

    Attributes:
        number: of the last commit.
        frames: how many frames the log had after it.
        checksum: of the last frame.
    """

    number: int = 0
    frames: int = 0
    checksum: int = 0


class Commits:
    """The commits of one database, for the connections of one lease.

    Args:
        path: the database.

    Attributes:
        is_refused: whether a commit was refused because acknowledged ones were missing.
    """

    def __init__(self, path: Path) -> None:
        self._path = commits_file(path)
        self._file: int | None = None
        self._database = str(path)
        self._size = size_of(self._database)
        self._noop = driver().SQLITE_CHECKPOINT_NOOP
        self.is_refused = False
        self._page_size = 0
        # The content of the file when it was read or written last, and what `known` found in it.
        self._content = b""
        self._known = Mark(), 0
        # SQLite's version of the data after the last commit of this process, and the number of that commit.
        self._latest = -1, 0

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            os.close(self._file)

    def counted(self, connection: "apsw.Connection") -> "CountedTransaction":
        """Return a transaction whose commit is counted if it changes rows.

        Args:
            connection: the one connection that writes; each call has the same.
        """
        return CountedTransaction(connection, self)

    def are_missing(self, connection: "apsw.Connection") -> bool:
        """Return whether acknowledged commits are missing from what a connection sees."""
        # Read before the number in the database: another process may write meanwhile.
        known = self.known()
        return self._are_missing(connection, known, number_with_log(connection))

    def known(self) -> tuple[Mark, int]:
        """Return the last commit that was acknowledged, and the number of the last one that a checkpoint moved."""
        try:
            content = os.pread(self._opened(), 2 * _BYTES, 0)
        except OSError:
            return Mark(), 0
        if content != self._content:
            self._content, self._known = content, (_newest(content[:_BYTES]), _newest(content[_BYTES:]).number)
        return self._known

    def checkpoint(self, connection: "apsw.Connection", mode: int) -> None:
        """Move the log into the database, and keep the number of the last commit that is certainly there then."""
        number = number_with_log(connection)
        frames, moved = connection.wal_checkpoint(mode=mode)
        self._size = max(self._size, size_of(self._database))
        if frames == moved:
            self._write(Mark(number), _PLACES)

    def keep_closed(self, path: Path) -> None:
        """Keep what a database holds whose log SQLite has removed, after it moved the log into the database."""
        number = number_in_header(path)
        if 0 < number <= self.known()[0].number:
            self._write(Mark(number), _PLACES)

    def begin_at(self, number: int) -> None:
        """Forget higher numbers: the database goes on at this one. Durable when it returns."""
        replace(self._path, _packed(Mark(number)))
        self.close()
        self._file = None
        self._latest = -1, 0

    def next_number(self, connection: "apsw.Connection") -> int:
        """Return the number of the commit that is about to happen; the write lock is held."""
        version, number = self._latest
        if connection.data_version() != version:
            # Another process has written, or what SQLite knows of the log has changed.
            number = number_with_log(connection)
            self._size = max(self._size, size_of(self._database))
        if self._are_missing(connection, self.known(), number) or self._is_cut(connection):
            self.is_refused = True
            raise DatabaseError("overwritten")
        return number + 1

    def _is_cut(self, connection: "apsw.Connection") -> bool:
        """Return whether the database has lost pages at its end since its size was read last."""
        if connection.read("main", _DATABASE, max(self._size - 1, 0), 1)[0]:
            return False
        self._size = size_of(self._database)
        return lacks_pages(connection, self._size)

    def _are_missing(self, connection: "apsw.Connection", known: tuple[Mark, int], number: int) -> bool:
        last, moved = known
        if number < last.number or number_in_file(connection) < moved:
            return True
        if number > last.number or last.frames == 0 or self._checksum(connection, last.frames) == last.checksum:
            return False
        # Another process may have emptied the log meanwhile, or have begun a new one.
        return number_in_file(connection) < number == number_with_log(connection)

    def acknowledge(self, connection: "apsw.Connection", number: int) -> None:
        """Write down the number of a commit that is durable."""
        self._latest = connection.data_version(), number
        frames, moved = connection.wal_checkpoint(mode=self._noop)
        self._write(Mark(number, frames, self._checksum(connection, frames)), 0)
        if frames == moved:
            self._write(Mark(number), _PLACES)

    def _write(self, mark: Mark, first: int) -> None:
        packed, place = _packed(mark), (first + mark.number % _PLACES) * _PLACE.size
        try:
            os.pwrite(self._opened(os.O_CREAT), packed, place)
        except OSError:
            # A full disk, or a folder that cannot be written: the file stays behind.
            return
        before, (_, moved) = self._content, self._known
        # What `known` will find, unless another process writes: then it reads all places again.
        self._content = b"" if first else before[:place].ljust(place, b"\0") + packed + before[place + len(packed) :]
        self._known = mark, moved

    def _checksum(self, connection: "apsw.Connection", frames: int) -> int:
        """Return the checksum of the last of some frames in the log; 0 if the log is shorter."""
        if not frames:
            return 0
        if not self._page_size:
            self._page_size = int(connection.execute("PRAGMA page_size").get)
        place = _LOG_HEADER + (frames - 1) * (_FRAME_HEADER + self._page_size) + _CHECKSUM
        return int.from_bytes(connection.read("main", _LOG, place, _CHECKSUM_BYTES)[1])

    def _opened(self, flags: int = 0) -> int:
        if self._file is None:
            self._file = os.open(self._path, os.O_RDWR | os.O_NOFOLLOW | flags, PRIVATE)
        return self._file


def commits_file(path: Path) -> Path:
    """Return the file beside a database that has the numbers of its last commits."""
    return path.with_name(f".{path.name}.commits")


def size_of(path: Path | str) -> int:
    """Return the bytes of a database; 0 without one."""
    try:
        return os.stat(path).st_size  # noqa: PTH116 - asked before each commit, so it makes no path
    except FileNotFoundError:
        return 0


def lacks_pages(connection: "apsw.Connection", size: int) -> bool:
    """Return whether pages are neither in the database nor in its log.

    A checkpoint that found no room has written the header, and the log still has the pages that the header counts. So
    the content is read, unless the file is as large as the header says.

    Args:
        connection: one that may read.
        size: the bytes of the database.
    """
    page, pages = _SIZES_FORM.unpack(connection.read("main", _DATABASE, _SIZES, _SIZES_FORM.size)[1])
    if 0 < pages * (_LARGEST_PAGE if page == 1 else page) <= size:
        return False
    connection.execute("PRAGMA shrink_memory")
    try:
        return connection.execute("PRAGMA quick_check(1)").fetchall() != [("ok",)]
    except driver().CorruptError:
        return True


def number_in_file(connection: "apsw.Connection") -> int:
    """Return the number that the database has without its log."""
    return int.from_bytes(connection.read("main", _DATABASE, _NUMBER, _NUMBER_BYTES)[1])


def number_in_header(path: Path) -> int:
    """Return the number that a database has without its log, before SQLite opens it; 0 if it has no header.

    Closing a file takes the locks from each connection of this process that has it open.
    """
    try:
        with open_regular(path) as file:
            file.seek(_NUMBER)
            return int.from_bytes(file.read(_NUMBER_BYTES))
    except OSError:
        return 0


def number_with_log(connection: "apsw.Connection") -> int:
    """Return the number that the database has with its log."""
    return int(connection.execute("PRAGMA user_version").get)


def _newest(content: bytes) -> Mark:
    """Return the highest of the marks that were written whole."""
    size = _PLACE.size
    for place in sorted((content[at : at + size] for at in range(0, len(content) - size + 1, size)), reverse=True):
        *found, seal = _PLACE.unpack(place)
        mark = Mark(*found)
        if seal == _seal(mark):
            return mark
    return Mark()


def _packed(mark: Mark) -> bytes:
    return _PLACE.pack(*mark, _seal(mark))


def _seal(mark: Mark) -> int:
    return mark.number ^ mark.frames ^ mark.checksum ^ _SEAL
