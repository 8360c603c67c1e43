"""The trace file: private, bounded, without content, and harmless when it fails."""

import json
import os
import stat
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaver_hooks_local.trace_file import TraceFile, _plain
from beaver_hostspecs.testing import FrozenClock, make_canary


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.shows("002-127")
def test_a_line(tmp_path):
    """Each event is one line of JSON with its moment and its facts, in a file that only its owner may read."""
    path = tmp_path / "t.jsonl"
    TraceFile(path, clock=FrozenClock())("recalled", found=3, share=0.123456789, names=("a",), none=None, odd=object())
    (line,) = lines(path)

    assert {"event": "recalled", "found": 3, "share": 0.123457, "names": ["a"], "none": None, "odd": "object"} == {
        name: value for name, value in line.items() if name not in ("at", "pid")
    }
    assert (FrozenClock().now().isoformat(), os.getpid()) == (line["at"], line["pid"])
    assert 0o600 == stat.S_IMODE(path.stat().st_mode)


def test_secrets_are_masked(tmp_path):
    """A credential that slips into a fact is masked."""
    canary = make_canary()
    TraceFile(tmp_path / "t.jsonl")("odd", text=f"the key is {canary.reveal()}")

    canary.assert_clean((tmp_path / "t.jsonl").read_bytes())


@given(st.dictionaries(st.from_regex("[a-z]{1,8}", fullmatch=True), st.text() | st.floats() | st.binary() | st.none()))
def test_any_facts(facts):
    """Any fact can be written as JSON."""
    assert isinstance(json.dumps({name: _plain(value) for name, value in facts.items()}), str)


def test_rotation(tmp_path):
    """A trace file that reaches its bound becomes the previous file, and an older previous file is dropped."""
    path = tmp_path / "t.jsonl"
    trace = TraceFile(path, most_bytes=1000)
    for number in range(100):
        trace("step", number=number)
    numbers = [line["number"] for line in (*lines(tmp_path / "t.jsonl.1"), *lines(path))]

    assert [".t.jsonl.lock", "t.jsonl", "t.jsonl.1"] == sorted(each.name for each in tmp_path.iterdir())
    assert numbers == [*range(numbers[0], 100)]
    assert all(each.stat().st_size <= 1000 for each in tmp_path.iterdir())


def test_several_at_once(tmp_path):
    """Several threads that write to one path lose no line until the file rotates."""
    path = tmp_path / "t.jsonl"

    def write(number):
        trace = TraceFile(path)
        for step in range(50):
            trace("step", which=number * 50 + step)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [*range(200)] == sorted(line["which"] for line in lines(path))


def test_it_is_told_once(tmp_path):
    """A trace file reports its failure once and its recovery once."""
    told = []
    path = tmp_path / "folder" / "t.jsonl"
    trace = TraceFile(path, told=told.append)
    trace("one")
    trace("two")
    path.parent.mkdir()
    trace("three")
    trace("four")

    assert (["FileNotFoundError", None], ["three", "four"]) == (told, [line["event"] for line in lines(path)])


def test_it_follows_no_link(tmp_path):
    """A trace file does not follow a symbolic link in its place."""
    (tmp_path / "t.jsonl").symlink_to(tmp_path / "other")
    told = []
    TraceFile(tmp_path / "t.jsonl", told=told.append)("one")

    assert (["OSError"], False) == (told, (tmp_path / "other").exists())
