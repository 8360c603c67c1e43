"""Acknowledged commits that are missing: noticed when a database is opened, and before the next write."""

import contextlib
import errno
import json
import os
import random
import shutil

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from notes_database import SCRIPTS, add, beside, opened, refusal

from beaver_toolkit.sqlite import lease
from beaver_toolkit.sqlite.connections import connect
from beaver_toolkit.sqlite.database import Database
from beaver_toolkit.sqlite.errors import DatabaseError
from beaver_toolkit.sqlite.losses import Loss, accept_losses, drop_damaged_logs, losses_of

FILES = ("notes.db", "notes.db-wal", "notes.db-shm", ".notes.db.commits", ".notes.db.open.lock")
COUNT = 8
FRAME = 4096 + 24


@pytest.fixture
def path(tmp_path):
    return tmp_path / "notes.db"


@pytest.fixture(autouse=True)
def _no_patience(monkeypatch):
    monkeypatch.setattr(lease, "DOUBT_SECONDS", 0.05)


def written(database, count=COUNT):
    for number in range(count):
        add(database, f"{number}")


def texts(database):
    return [text for (text,) in database.connection.execute("SELECT text FROM notes ORDER BY rowid")]


def texts_in(path):
    with opened(path) as database:
        return texts(database)


def copied(path, to):
    """Copy all files of a database to another folder, as they are, as a crash leaves them; return the copy."""
    to.mkdir()
    for name in FILES:
        if path.with_name(name).exists():
            shutil.copyfile(path.with_name(name), to / name)
    return to / path.name


def crashed(path, to, count=COUNT):
    """Return a database whose log holds some commits, as a killed process leaves it."""
    with opened(path) as database:
        written(database, count)
        return copied(path, to)


def flip(file, place, bit=0):
    content = bytearray(file.read_bytes())
    content[place] ^= 1 << bit
    file.write_bytes(content)


# --- When the database is opened ------------------------------------------------------------------------------------


def test_flipped_bits_of_a_log_after_a_crash(path, tmp_path):
    """Wherever a bit of the log is flipped, the missing commits are counted, and a copy of the log is kept."""
    whole, chance = crashed(path, tmp_path / "whole"), random.Random(1)
    for number in range(10):
        copy = copied(whole, tmp_path / f"{number}")
        flip(beside(copy, "-wal"), chance.randrange(32, beside(copy, "-wal").stat().st_size), chance.randrange(8))
        damaged = beside(copy, "-wal").read_bytes()
        there = texts_in(copy)

        kept = f"notes.db-wal.damaged-{COUNT}"
        assert [Loss(COUNT, len(there), kept, older=False)] == losses_of(copy)
        assert damaged == copy.with_name(kept).read_bytes()
        assert [f"{text}" for text in range(COUNT - 1)][: len(there)] == there


def test_a_log_that_was_removed_after_a_crash(path, tmp_path):
    """Without the log that a killed process left, its commits are missing, and this is noticed."""
    copy = crashed(path, tmp_path / "copy")
    beside(copy, "-wal").unlink()

    # The schema was in the log, too.
    assert [] == texts_in(copy)
    assert [Loss(COUNT, 0, "", older=False)] == losses_of(copy)


def test_a_database_goes_on_after_a_loss(path, tmp_path):
    """A loss is noticed once: later commits are counted from there, and a second loss is another one."""
    copy = crashed(path, tmp_path / "copy")
    os.truncate(beside(copy, "-wal"), beside(copy, "-wal").stat().st_size - 1)
    assert COUNT - 1 == len(texts_in(copy))
    with opened(copy) as database:
        written(database, 2)
        again = copied(copy, tmp_path / "again")
    shutil.copyfile(beside(copy, ".losses"), beside(again, ".losses"))
    first = Loss(COUNT, COUNT - 1, "", older=False)
    os.truncate(beside(again, "-wal"), beside(again, "-wal").stat().st_size - 1)
    texts_in(again)

    assert [first, Loss(COUNT + 1, COUNT, f"notes.db-wal.damaged-{COUNT + 1}", older=False)] == losses_of(again)


def test_a_damaged_log_whose_content_is_in_the_database(path, tmp_path):
    """A damaged log is set aside if the database holds later commits than the rest of the log: nothing is missing."""
    with opened(path) as database:
        written(database)
        database.connection.wal_checkpoint()
        copy = copied(path, tmp_path / "copy")
    flip(beside(copy, "-wal"), 32 + FRAME * 3)

    assert ([f"{number}" for number in range(COUNT)], []) == (texts_in(copy), losses_of(copy))
    assert copy.with_name(f"notes.db-wal.damaged-{COUNT}").exists()


def test_an_older_copy_is_noticed_once(path, tmp_path):
    """A database that was replaced by an older copy opens; the loss is noticed once, and writing goes on."""
    with opened(path) as database:
        written(database, 2)
    shutil.copyfile(path, tmp_path / "older")
    with opened(path) as database:
        written(database, 3)
    shutil.copyfile(tmp_path / "older", path)
    assert ["0", "1"] == texts_in(path)
    told = [Loss(5, 2, "", older=True)]
    assert told == losses_of(path)
    with opened(path) as database:
        add(database, "later")

    assert (["0", "1", "later"], told) == (texts_in(path), losses_of(path))


def test_an_older_copy_beside_the_log_of_a_later_one(path, tmp_path):
    """The log that a killed process left is not mixed with an older copy of the database: it is set aside."""
    with opened(path) as database:
        written(database, 2)
    shutil.copyfile(path, tmp_path / "older")
    with opened(path) as database:
        written(database, 3)
    with opened(path) as database:
        written(database, 4)
        copy = copied(path, tmp_path / "copy")
    shutil.copyfile(tmp_path / "older", copy)

    assert ["0", "1"] == texts_in(copy)
    assert [Loss(9, 2, "notes.db-wal.damaged-9", older=True)] == losses_of(copy)


def test_an_older_log_beside_its_database(path, tmp_path):
    """A log from before the database's last checkpoint is set aside, because SQLite would apply it."""
    with opened(path) as database:
        written(database, 2)
        older = beside(path, "-wal").read_bytes()
        written(database, 3)
        database.empty_log()
        copy = copied(path, tmp_path / "copy")
    beside(copy, "-wal").write_bytes(older)

    assert (["0", "1", "0", "1", "2"], []) == (texts_in(copy), losses_of(copy))


def test_a_new_database_of_the_same_name(path):
    """A database that is made where another one was begins anew, without a notice."""
    with opened(path) as database:
        written(database)
    path.unlink()

    assert ([], []) == (texts_in(path), losses_of(path))


def test_accepting_a_loss(path, tmp_path):
    """The user accepts a loss: its notice goes, and the damaged log with it."""
    copy = crashed(path, tmp_path / "copy")
    flip(beside(copy, "-wal"), 32 + FRAME * 4)
    texts_in(copy)
    others = {"notes.db-wal.mine", "notes.db-wal.damaged-mine"}
    for name in others:
        copy.with_name(name).touch()
    told = losses_of(copy)

    assert (told, [], {"notes.db", ".notes.db.commits", *others}) == (
        accept_losses(copy),
        losses_of(copy),
        {each.name for each in copy.parent.iterdir()},
    )


def test_accepting_no_loss(tmp_path):
    """Where there is no notice, nothing is accepted, and nothing is deleted."""
    for name in ("notes.db", "notes.db-wal.damaged-7"):
        (tmp_path / name).touch()

    assert [] == accept_losses(tmp_path / "notes.db")
    assert {"notes.db", "notes.db-wal.damaged-7"} == {each.name for each in tmp_path.iterdir()}


def test_dropping_the_damaged_logs_keeps_the_notice(path, tmp_path):
    """The evidence of a loss can be erased alone: it holds texts that were written to the database."""
    copy = crashed(path, tmp_path / "copy")
    flip(beside(copy, "-wal"), 32 + FRAME * 4)
    texts_in(copy)
    told = losses_of(copy)
    drop_damaged_logs(copy)

    assert ([told[0]._replace(log="")], []) == (losses_of(copy), [*copy.parent.glob("*damaged*")])


@pytest.mark.parametrize(
    ("loss", "sentence"),
    [
        (
            Loss(9, 7, "notes.db-wal.damaged-9", older=False),
            (
                "2 commits that were acknowledged are missing: the end of the log was damaged or lost. The damaged log is"
                " kept in notes.db-wal.damaged-9."
            ),
        ),
        (
            Loss(9, 8, "", older=True),
            (
                "1 commit that was acknowledged is missing: the database is older than what was acknowledged here, or"
                " another one."
            ),
        ),
    ],
)
def test_the_sentence_of_a_loss(loss, sentence):
    """The sentence of a loss says how many commits are missing, and why."""
    assert sentence == str(loss)


def test_a_notice_that_cannot_be_written(path, tmp_path, monkeypatch):
    """On a full disk a damaged log is not written to: the database is read as it is, until the notice can be kept."""
    copy = crashed(path, tmp_path / "copy")
    flip(beside(copy, "-wal"), 32 + FRAME * 4)

    def refuse(*_):
        raise OSError(errno.ENOSPC, "full")

    with monkeypatch.context() as patch:
        patch.setattr("beaver_toolkit.sqlite.losses.replace", refuse)
        assert "disk_full" == refusal(lambda: Database.open(copy, SCRIPTS))
        with contextlib.closing(Database.open_or_view(copy, SCRIPTS)) as database:
            there = texts(database)

    assert (there, 1) == (texts_in(copy), len(losses_of(copy)))


def test_damaged_numbers(path):
    """A file of numbers that is damaged, short or empty raises no alarm."""
    for content in (b"", b"x" * 40, os.urandom(256), bytes(256)):
        with opened(path) as database:
            add(database, "kept")
        path.with_name(".notes.db.commits").write_bytes(content)

    assert (["kept"] * 4, []) == (texts_in(path), losses_of(path))


def test_a_notice_that_is_damaged(path):
    """A notice that cannot be read still counts as one."""
    with opened(path) as database:
        add(database, "kept")
    for content in (b"{", b"[1]", json.dumps([[1, 2]]).encode()):
        beside(path, ".losses").write_bytes(content)
        assert [Loss(0, 0, "", older=False)] == losses_of(path)


# --- While the database is open -------------------------------------------------------------------------------------


def test_blocks_that_change_nothing_are_no_commits(path):
    """Only a block that changes rows writes to the database."""
    with opened(path) as database:
        add(database, "kept")
        before = beside(path, "-wal").stat().st_size
        with database.transaction() as connection:
            connection.execute("SELECT * FROM notes").fetchall()

        assert before == beside(path, "-wal").stat().st_size


def overwrite(file, content):
    """Write over a file in place, as `cp` does."""
    with file.open("r+b") as target:
        target.truncate(len(content))
        target.write(content)


@pytest.mark.parametrize("ending", ["", "-wal"])
def test_an_older_copy_written_over_an_open_file(path, ending):
    """The next write is refused, and pages of the other files are not mixed with it."""
    with opened(path) as database:
        written(database, 2)
        database.empty_log()
        older = beside(path, ending).read_bytes()
        written(database, 2)
        database.empty_log()
        written(database, 1)
        overwrite(beside(path, ending), older)

        assert "overwritten" == refusal(lambda: add(database, "refused"))
    left = ["0", "1", "0", "1"]
    assert (left if ending else left[:2]) == texts_in(path)
    (told,) = losses_of(path)
    assert (5, 4 if ending else 2, not ending) == (told.acknowledged, told.found, told.older)


def test_an_index_of_the_log_that_is_written_over(path):
    """The next write is refused, and the log is read again: nothing is missing."""
    with opened(path) as database:
        written(database, 2)
        older = beside(path, "-shm").read_bytes()
        written(database, 2)
        overwrite(beside(path, "-shm"), older)

        assert "overwritten" == refusal(lambda: add(database, "refused"))
    assert (["0", "1", "0", "1"], []) == (texts_in(path), losses_of(path))


def test_a_log_that_is_cut(path):
    """The next write is refused if the log of an open database was cut; the missing commits are counted."""
    with opened(path) as database:
        written(database, 4)
        os.truncate(beside(path, "-wal"), beside(path, "-wal").stat().st_size - FRAME)

        assert "overwritten" == refusal(lambda: add(database, "refused"))
    assert (["0", "1", "2"], [(4, 3)]) == (texts_in(path), [each[:2] for each in losses_of(path)])


def test_a_file_that_is_written_over_before_closing(path):
    """Closing does not move a log into a database that was overwritten by an older copy."""
    with opened(path) as database:
        written(database, 2)
    older = path.read_bytes()
    with opened(path) as database:
        written(database, 2)
        database.empty_log()
        written(database, 1)
        overwrite(path, older)

    assert (["0", "1"], [(5, 2)]) == (texts_in(path), [each[:2] for each in losses_of(path)])


def test_another_process_hears_of_a_file_that_was_written_over(path):
    """Each process that has the database open hears of it; the database opens again when the last one has noticed."""
    with opened(path) as database, opened(path) as other:
        written(database, 2)
        other.empty_log()
        older = path.read_bytes()
        written(other, 2)
        other.empty_log()
        overwrite(path, older)

        assert "overwritten" == refusal(lambda: add(database, "refused"))
        assert "in_use" == refusal(lambda: texts_in(path))
        assert "overwritten" == refusal(other.verify)
    assert ["0", "1"] == texts_in(path)


STEPS = st.lists(st.sampled_from(["add a", "add b", "empty a", "close a", "close b", "crash"]), max_size=12)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_the_usual_life_raises_no_alarm(tmp_path_factory, steps):
    """Whatever two processes do, and wherever they crash, all acknowledged rows are there, and nothing is refused."""
    path, running, expected = tmp_path_factory.mktemp("life") / "notes.db", {}, 0
    for step in steps:
        do, _, name = step.partition(" ")
        if do == "crash":
            moved = copied(path, tmp_path_factory.mktemp("life") / "copy") if path.exists() else path
            for each in running.values():
                each.close()
            path, running = moved, {}
        elif do == "close" and name in running:
            running.pop(name).close()
        elif do in {"add", "empty"}:
            database = running[name] if name in running else running.setdefault(name, Database.open(path, SCRIPTS))
            if do == "add":
                add(database, "kept")
                expected += 1
            else:
                database.empty_log()
    for each in running.values():
        each.close()
    assert (["kept"] * expected, []) == (texts_in(path), losses_of(path))


def test_a_database_on_a_disk_without_room_for_numbers(path, monkeypatch):
    """Commits are kept where their numbers cannot be written."""

    def refuse(*_):
        raise OSError(errno.ENOSPC, "full")

    with opened(path) as database:
        with monkeypatch.context() as patch:
            patch.setattr(os, "pwrite", refuse)
            written(database, 2)
        written(database, 1)

    assert (["0", "1", "0"], []) == (texts_in(path), losses_of(path))


def test_a_program_that_does_not_count(path):
    """A program that writes without counting, and checkpoints, raises no alarm."""
    with opened(path) as database:
        written(database, 2)
        with contextlib.closing(connect(path)) as other:
            other.execute("INSERT INTO notes VALUES ('other')")
            other.wal_checkpoint()
        add(database, "later")

    assert (["0", "1", "other", "later"], []) == (texts_in(path), losses_of(path))


def large(database):
    """Fill a database with some pages, and move them out of the log."""
    written(database)
    add(database, "x" * 40_000)
    database.empty_log()


def test_a_database_that_is_cut_while_it_is_open(path):
    """The next write is refused before it is acknowledged, and a process that opens the database finds it damaged."""
    with contextlib.suppress(DatabaseError), opened(path) as database:
        large(database)
        add(database, "later")
        os.truncate(path, 3 * 4096)

        assert "overwritten" == refusal(lambda: add(database, "lost"))
    assert "corrupt" == refusal(lambda: texts_in(path))


def test_a_checkpoint_without_room(path, tmp_path):
    """A header that counts more pages than the file has is no fault as long as the log has them."""
    with opened(path) as database:
        large(database)
        size = path.stat().st_size
        add(database, "y" * 40_000)
        pages = database.connection.execute("PRAGMA page_count").get
        with path.open("r+b") as file:
            # What a checkpoint has written when the disk is full.
            file.seek(28)
            file.write(pages.to_bytes(4))
        add(database, "kept")
        copy = copied(path, tmp_path / "copy")

    assert size < pages * 4096
    assert ["y" * 40_000, "kept"] == texts_in(copy)[-2:] == texts_in(path)[-2:]
    assert [] == losses_of(copy)


def test_a_database_that_another_program_makes_smaller(path):
    """VACUUM of another program cuts the file, and no later write is refused for that."""
    with opened(path) as database:
        large(database)
        size = path.stat().st_size
        with contextlib.closing(connect(path)) as other:
            other.execute("DELETE FROM notes WHERE length(text) > 9; VACUUM")
            other.wal_checkpoint()
        smaller = path.stat().st_size
        add(database, "kept")

    assert smaller < size
    assert "kept" == texts_in(path)[-1]
