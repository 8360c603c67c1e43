"""The store: durable, merged with what others write, and able to take a change back."""

import json
import os
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from beaver_hooks_curated import files, history
from beaver_hooks_curated.edits import Operation, apply, prepare
from beaver_hooks_curated.entries import Target
from beaver_hooks_curated.errors import EditRefused, MemoryLocked, MemoryUnreadable, MemoryUnwritable, UnknownChange
from beaver_hooks_curated.history import OUTSIDE, Change
from beaver_toolkit import files as toolkit

MEMORY = Target.MEMORY


def do(store, action, content=None, old_text=None, *, archive=False):
    steps = prepare([Operation(action=action, content=content, old_text=old_text)])
    return store.write(MEMORY, lambda page: apply(page, steps, archive=archive), action=action)


def entries(store):
    return store.read(MEMORY).page.entries


def by_hand(store, text, clock, *, seconds=0.0):
    """Write the file as an editor does, some time after the clock's."""
    store.path(MEMORY).parent.mkdir(exist_ok=True)
    store.path(MEMORY).write_text(text)
    when = clock.now().timestamp() + seconds
    os.utime(store.path(MEMORY), (when, when))


def actions(store):
    return [change.action for change in store.changes(MEMORY)]


@pytest.mark.shows("000-044", "000-048")
def test_write(store, add):
    """A write is in the file, in the answer and in the history; other targets stay as they are."""
    add(store, "one")
    written = add(store, "two")

    assert "one\n§\ntwo" == store.path(MEMORY).read_text()
    assert (("one",), ("one", "two"), "add") == (written.change.before, written.change.after, written.change.action)
    assert (("one", "two"), ()) == (entries(store), store.read(Target.USER).page.entries)
    assert (("two",), (), ()) == (written.change.added, written.change.removed, written.outside)


def _identity(path):
    """Return the facts that change when a file is written, and not when it is read."""
    found = path.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def test_nothing_to_do(store, add):
    """A duplicate writes nothing."""
    add(store, "one")
    before = _identity(store.path(MEMORY))

    assert None is add(store, "one").change
    assert (before, ["add"]) == (_identity(store.path(MEMORY)), actions(store))


def test_two_stores_merge(make_store, add):
    """Each write of one store starts from the current file, including the writes of another store."""
    one, two = make_store(), make_store()
    add(one, "one")
    add(two, "two")
    add(one, "three")

    assert ("one", "two", "three") == entries(two)


def test_file_without_history(store, add, clock):
    """An existing file without a history becomes the first entry of the history."""
    by_hand(store, "mine", clock)

    assert ("mine",) == store.read(MEMORY).outside.after
    assert [(OUTSIDE, ("mine",))] == [(each.action, each.after) for each in add(store, "one").outside]
    assert (("mine", "one"), [OUTSIDE, "add"]) == (entries(store), actions(store))


def test_later_hand_wins(store, add, clock):
    """A later edit by hand replaces all entries, and is recorded."""
    add(store, "one")
    by_hand(store, "other\n", clock, seconds=60)

    written = store.adopt(MEMORY)

    assert (("other",), None, ["add", OUTSIDE]) == (entries(store), written.change, actions(store))
    assert None is store.read(MEMORY).outside


def test_hand_that_has_not_seen(store, add, clock):
    """An edit by hand that overwrites a write of a moment ago is merged with it."""
    add(store, "one")
    add(store, "two")
    by_hand(store, "one\n§\nmine", clock, seconds=1)

    assert ("one", "mine", "two") == entries(store)
    store.adopt(MEMORY)
    assert "one\n§\nmine\n§\ntwo" == store.path(MEMORY).read_text()


def test_correction_by_a_person(store, clock):
    """An edit by hand that a user corrects a second later does not come back."""
    by_hand(store, "Allergic to nu", clock)
    store.adopt(MEMORY)
    by_hand(store, "Allergic to nuts.\n§\nLikes tea.", clock, seconds=1)
    store.adopt(MEMORY)

    assert "Allergic to nuts.\n§\nLikes tea." == store.path(MEMORY).read_text()


def test_appended_by_a_shell(store, add, clock):
    """Text appended to the last entry just after a write becomes part of that entry and duplicates none."""
    add(store, "one")
    add(store, "two")
    by_hand(store, f"{store.path(MEMORY).read_text()} and more\n", clock, seconds=1)

    assert ("one", "two and more") == store.adopt(MEMORY).page.entries


def test_deletion_by_a_person_who_has_seen(store, add, clock):
    """An edit by hand that keeps the newest entry deletes the older entries that it omits."""
    add(store, "one")
    add(store, "two")
    by_hand(store, "two", clock, seconds=1)

    assert ("two",) == entries(store)


@given(st.lists(st.lists(st.sampled_from(["nu", "nuts", "tea", "teapot"]), min_size=1, unique=True), max_size=5))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_only_people_write(make_store, clock, tmp_path_factory, texts):
    """While only users edit, the file holds their last text, even after edits in quick succession."""
    store = make_store(folder=tmp_path_factory.mktemp("people"))
    for text in texts:
        by_hand(store, "\n§\n".join(text), clock)
        store.adopt(MEMORY)
        clock.advance(0.5)
        assert tuple(text) == entries(store)


def test_emptied(store, add, clock):
    """An emptied file is empty, and the history records it and can restore it."""
    add(store, "one")
    by_hand(store, "", clock, seconds=1)

    (outside,) = store.adopt(MEMORY).outside
    assert (("one",), ()) == (outside.before, outside.after)
    store.undo(MEMORY)
    assert ("one",) == entries(store)


def test_missing(store, add, clock):
    """A file that was deleted counts as emptied, and comes back with the next write."""
    add(store, "one")
    store.path(MEMORY).unlink()
    clock.advance(60)

    assert ("two",) == add(store, "two").page.entries


def test_crash_between_history_and_file(store, add, clock, monkeypatch):
    """A change that reached only the history is not applied, and its absence does not count as an edit by hand."""
    add(store, "one")
    monkeypatch.setattr(files, "replace", _crash)
    with pytest.raises(KeyboardInterrupt):
        add(store, "two")
    monkeypatch.undo()
    by_hand(store, "one", clock, seconds=-1)

    assert (("one",), None) == (entries(store), store.read(MEMORY).outside)
    add(store, "three")
    assert ["add", "add", "add"] == actions(store)
    store.undo(MEMORY)
    store.undo(MEMORY)
    assert () == entries(store)


def _crash(*_):
    raise KeyboardInterrupt


def test_edit_in_the_middle_of_a_write(store, add, clock, monkeypatch):
    """An edit by hand between the store's read and write is merged with that write."""
    add(store, "one")
    replace, slips = files.replace, iter(["one\n§\nmine"])

    def slow(path, text, trust):
        if path == store.path(MEMORY):
            for slip in slips:
                by_hand(store, slip, clock)
        return replace(path, text, trust)

    monkeypatch.setattr(files, "replace", slow)
    written = add(store, "two")

    assert ("one", "mine", "two") == written.page.entries == entries(store)
    assert ["add", "add", OUTSIDE] == actions(store)
    assert [("mine",)] == [change.added for change in written.outside]


@pytest.mark.parametrize("slip", ["", "one"])
def test_nothing_new_in_the_middle_of_a_write(store, add, monkeypatch, slip):
    """An edit by hand during a write that adds no entry does not change the result of the write."""
    add(store, "one")
    add(store, "two")
    replace = files.replace

    def slow(path, text, trust):
        if path == store.path(MEMORY):
            path.write_text(slip)
        return replace(path, text, trust)

    monkeypatch.setattr(files, "replace", slow)
    do(store, "remove", old_text="two")

    assert (("one",), ()) == (entries(store), store.changes(MEMORY)[-1].added)


def test_two_in_the_middle_of_a_write(store, add, clock, monkeypatch):
    """A write finishes even while an editor keeps changing the file, and the first 19 of those edits are kept."""
    add(store, "one")
    replace, count = files.replace, iter(range(1000))

    def slow(path, text, trust):
        if path == store.path(MEMORY):
            by_hand(store, f"{path.read_text()}\n§\nmine {next(count)}", clock)
        return replace(path, text, trust)

    monkeypatch.setattr(files, "replace", slow)
    add(store, "two")

    assert {"one", "two", *(f"mine {number}" for number in range(19))} <= set(entries(store))


def test_unreadable(store, add):
    """An unreadable file makes reads and writes raise, and stays unchanged."""
    add(store, "one")
    store.path(MEMORY).write_bytes(b"\xff\xfe")

    for call in (lambda: store.read(MEMORY), lambda: add(store, "two"), lambda: store.undo(MEMORY)):
        with pytest.raises(MemoryUnreadable):
            call()
    assert b"\xff\xfe" == store.path(MEMORY).read_bytes()


def test_unwritable(store, add, monkeypatch):
    """If the file cannot be written, it keeps its old entries."""
    add(store, "one")
    monkeypatch.setattr(toolkit, "_write", _full)
    with pytest.raises(MemoryUnwritable):
        add(store, "two")

    assert ("one",) == entries(store)


def _full(*_):
    raise OSError(28, "No space left on device")


def test_locked(store, make_store, add):
    """A write that waits for the lock in vain is refused."""
    impatient = make_store(lock_seconds=0.01)
    add(store, "one")
    with store.locked(), pytest.raises(MemoryLocked):
        add(impatient, "two")


def test_sweep(store, add):
    """Temporary files are removed, and a folder without any is not locked."""
    assert 0 == store.sweep()
    add(store, "one")
    (store.folder / ".MEMORY.md.aa.tmp").write_text("stray")

    assert (1, 0) == (store.sweep(), store.sweep())


def test_archive(make_store):
    """Evicted entries are in the archive, with target and action."""
    store = make_store(limit=20)
    for text in ("a" * 9, "b" * 9, "ü" * 9):
        do(store, "add", text, archive=True)

    lines = (store.folder / "ARCHIVE.jsonl").read_text().splitlines()
    assert [("memory", "add_overflow", "a" * 9), ("memory", "add_overflow", "b" * 9)] == [
        (each["target"], each["action"], each["entry"]) for each in map(json.loads, lines)
    ]
    assert ("ü" * 9,) == entries(store)


def test_failing_archive(make_store, monkeypatch):
    """If the archive cannot be written, nothing is evicted."""
    store = make_store(limit=10)
    do(store, "add", "a" * 9, archive=True)
    (store.folder / "ARCHIVE.jsonl").mkdir()

    with pytest.raises(MemoryUnwritable):
        do(store, "add", "b" * 9, archive=True)
    assert (("a" * 9,), ["add"]) == (entries(store), actions(store))


@pytest.mark.parametrize(
    ("action", "content", "old_text"), [("add", "three", None), ("replace", "TWO", "two"), ("remove", None, "one")]
)
def test_undo(store, add, action, content, old_text):
    """Each `undo` reverts one change, from the newest to the oldest, and then raises."""
    add(store, "one")
    add(store, "two")
    do(store, action, content, old_text)

    assert ("one", "two") == store.undo(MEMORY).page.entries
    assert ("one",) == store.undo(MEMORY).page.entries
    assert () == store.undo(MEMORY).page.entries
    with pytest.raises(UnknownChange):
        store.undo(MEMORY)


def test_undo_leaves_later_edits(store, add, clock):
    """`undo` of an older change keeps the entries that were added by hand since."""
    add(store, "one")
    by_hand(store, "one\n§\nmine", clock, seconds=60)
    store.adopt(MEMORY)
    clock.advance(100)
    store.undo(MEMORY)

    assert ("one",) == entries(store)
    by_hand(store, "one\n§\nmine", clock, seconds=60)
    written = store.undo(MEMORY)
    assert (("one",), [("mine",)]) == (entries(store), [change.added for change in written.outside])
    store.undo(MEMORY)
    assert () == entries(store)


def test_undo_refuses(make_store, add):
    """`undo` refuses a change whose entry was changed again, or whose old entry no longer fits."""
    store = make_store(limit=10)
    add(store, "aaaa")
    do(store, "replace", "bbbb", "aaaa")
    store.path(MEMORY).write_text("cccc")
    with pytest.raises(EditRefused) as caught:
        store.write(MEMORY, lambda page: _undone(store, page), action="undo")
    assert "stale" == caught.value.kind

    do(store, "replace", "d", "cccc")
    add(store, "eeee")
    store.path(MEMORY).write_text("ffffffff")
    with pytest.raises(EditRefused, match='with "cccc" back it would be 15 of 10 characters'):
        store.write(MEMORY, lambda page: _undone(store, page, index=-2), action="undo")


def _undone(store, page, index=-1):
    from beaver_hooks_curated.history import without

    change = store.changes(MEMORY)[index]
    if index == -2:
        change = Change(when=change.when, target=MEMORY, action="remove", before=("cccc",), after=())
    return without(change, page)


def test_forget_history(make_store):
    """`forget_history` removes deleted entries from history and archive, and edits by hand are still recognised."""
    store = make_store(limit=10)
    for text in ("a" * 9, "b" * 9):
        do(store, "add", text, archive=True)
    store.forget_history()

    assert (["b" * 9], False) == (
        [entry for change in store.changes(MEMORY) for entry in (*change.before, *change.added)],
        (store.folder / "ARCHIVE.jsonl").exists(),
    )
    assert None is store.read(MEMORY).outside


def test_history_is_bounded(store, add, monkeypatch):
    """A history that grows too long loses only its older half."""
    monkeypatch.setattr(history, "LARGEST", 2000)
    for number in range(30):
        do(store, "replace", f"entry {number}", "entry") if number else add(store, "entry 0")

    changes = store.changes(MEMORY)
    assert "entry 29" == changes[-1].after[0]
    assert 2 < len(changes) < 30
    assert store.folder.joinpath(".MEMORY.md.history.jsonl").stat().st_size <= 2200


def test_history_keeps_the_last_change(store, add, monkeypatch):
    """The last change stays in the history even when it alone is too long."""
    monkeypatch.setattr(history, "LARGEST", 1)
    add(store, "one")
    add(store, "two")

    assert [("one", "two")] == [change.after for change in store.changes(MEMORY)]


@pytest.mark.parametrize("line", ["torn", "[]", "{}", '{"id": 1, "when": "x"}', "[" * 100_000, '{"before": "a"}'])
def test_damaged_history(store, add, line):
    """A damaged line of the history is skipped."""
    add(store, "one")
    path = store.folder / ".MEMORY.md.history.jsonl"
    path.write_text(f"{line}\n{path.read_text()}{line}")
    add(store, "two")

    assert (("one", "two"), ["add", "add"]) == (entries(store), actions(store))


@pytest.mark.parametrize(
    ("key", "value"),
    [("when", "2026-01-01T00:00:00"), ("after", ["a\n§\nb"]), ("after", [""]), ("after", {"sha256": "x"}), ("when", 5)],
)
def test_history_of_wrong_values(store, add, key, value):
    """A line with impossible values is skipped."""
    add(store, "one")
    path = store.folder / ".MEMORY.md.history.jsonl"
    path.write_text(json.dumps({**json.loads(path.read_text()), key: value}) + "\n")

    assert ((), ("one",)) == (store.changes(MEMORY), entries(store))


def test_order_of_a_write(make_store, monkeypatch):
    """Archive, history, file and folder are synced in this order, and the file before it gets its name."""
    store = make_store(limit=20)
    do(store, "add", "a" * 15, archive=True)
    done, fsync, exchange = [], os.fsync, toolkit.exchange

    def synced(descriptor):
        name = Path(f"/proc/self/fd/{descriptor}").readlink().name
        done.append(("sync", "temporary" if name.endswith(".tmp") else name))
        fsync(descriptor)

    def placed(new, place):
        done.append(("put", place.name))
        return exchange(new, place)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(toolkit, "exchange", placed)
    do(store, "add", "b" * 15, archive=True)

    assert [
        ("sync", "ARCHIVE.jsonl"),
        ("sync", ".MEMORY.md.history.jsonl"),
        ("sync", "temporary"),
        ("put", "MEMORY.md"),
        ("sync", store.folder.name),
    ] == done


def test_no_text_in_the_middle_of_a_write(store, add, clock, monkeypatch):
    """A file that becomes unreadable during a write stays as it is, and the write is refused for good."""
    add(store, "one")
    replace, slips = files.replace, iter([b"one\n\xa7\ncaf\xe9"])

    def slow(path, text, trust):
        for slip in slips:
            path.with_name("x~").write_bytes(slip)
            path.with_name("x~").replace(path)
        return replace(path, text, trust)

    monkeypatch.setattr(files, "replace", slow)
    with pytest.raises(MemoryUnreadable, match="is not UTF-8"):
        add(store, "two")

    assert b"one\n\xa7\ncaf\xe9" == store.path(MEMORY).read_bytes()
    by_hand(store, "one\n§\ncafé", clock)
    assert ("one", "café") == entries(store)


def test_history_of_wrong_types(store, add):
    """A line whose entries are not strings is skipped."""
    add(store, "one")
    path = store.folder / ".MEMORY.md.history.jsonl"
    path.write_text(path.read_text().replace('["one"]', '"one"'))

    assert () == store.changes(MEMORY)


def test_threads(store, add):
    """Writes of several threads all succeed."""
    threads = [threading.Thread(target=add, args=(store, f"entry {number}")) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert {f"entry {number}" for number in range(8)} == set(entries(store))


STEPS = st.lists(
    st.tuples(st.sampled_from(["add", "remove", "undo", "hand"]), st.sampled_from(["one", "two", "three", "four"])),
    max_size=12,
)


@given(STEPS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_model(make_store, clock, tmp_path_factory, steps):
    """After any sequence of edits, undos and edits by hand the file holds the entries of the last answer."""
    store = make_store(folder=tmp_path_factory.mktemp("model"))
    known = ()
    for step, text in steps:
        clock.advance(100)
        try:
            if step == "hand":
                known = tuple(dict.fromkeys((*known, f"hand {text}")))
                by_hand(store, "\n§\n".join(known), clock)
            elif step == "undo":
                known = store.undo(MEMORY).page.entries
            else:
                known = do(store, step, text, text).page.entries
        except (EditRefused, UnknownChange):
            pass
        assert known == entries(make_store(folder=store.folder))
