"""Several processes, one trail: no acknowledged event is lost, whichever process is killed at whichever moment."""

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from beaver_hooks.audit.reader import TrailReader

WRITER = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from beaver_hooks.audit.events import AuditEvent
from beaver_hooks.audit.trail import Trail

folder, name = Path(sys.argv[1]), sys.argv[2]
trail = Trail.open(folder)
number = 0
while True:
    for _ in range(5):
        number += 1
        trail.append(AuditEvent(name="written", at=datetime.now(UTC), facts={"id": f"{name}-{number}"}))
    trail.put_receipt(f"{name}-{number}", datetime.now(UTC), {"number": number})
    trail.flush()
    print(f"{name}-{number}", flush=True)
"""

FORKER = """
import os, sys
from datetime import UTC, datetime
from pathlib import Path
from beaver_hooks.audit.events import AuditEvent
from beaver_hooks.audit.trail import Trail
from beaver_hostspecs import AuditUnavailable

trail = Trail.open(Path(sys.argv[1]))
event = AuditEvent(name="written", at=datetime.now(UTC))
trail.append(event)
trail.flush()
child = os.fork()
trail.append(event)
if child:
    trail.append(event)
    trail.flush()
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), trail.close(), trail.verify().checked, flush=True)
else:
    for call in (trail.flush, trail.tail):
        try:
            call()
        except AuditUnavailable as error:
            assert "was opened by another process" in str(error)
        else:
            sys.exit(1)
    sys.exit(trail.close())
"""

KEY = """
import sys
from pathlib import Path
from beaver_hooks.audit.key import make_key
sys.stdin.read(1)
print(make_key(Path(sys.argv[1])).secret.hex())
"""


def start(code: str, *arguments: str | Path) -> subprocess.Popen[str]:
    """Start a process that runs `code`."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def acknowledged(writer: subprocess.Popen[str], lines: list[str]) -> list[str]:
    """Return the ids that a killed writer had acknowledged; its last line may be torn."""
    # Not communicate(): it reads past what readline() has buffered.
    with writer:
        rest = writer.stdout.read()
    return [*lines, *rest.rpartition("\n")[0].splitlines()]


@pytest.mark.campaign
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_four_processes_and_kill_9(tmp_path, seed):
    """Four processes append until they are killed, some are replaced: the chain holds, and nothing acknowledged is missing."""
    chance = random.Random(seed)
    writers = [start(WRITER, tmp_path, f"w{number}") for number in range(4)]
    given = []
    for number in range(4, 8):
        # After some acknowledgements one of the processes dies in the middle of its work, and another one begins.
        victim = writers.pop(chance.randrange(len(writers)))
        lines = [victim.stdout.readline().strip() for _ in range(chance.randrange(1, 12))]
        victim.send_signal(signal.SIGKILL)
        given += acknowledged(victim, lines)
        writers.append(start(WRITER, tmp_path, f"w{number}"))
    for writer in writers:
        lines = [writer.stdout.readline().strip()]
        writer.send_signal(signal.SIGKILL)
        given += acknowledged(writer, lines)

    reader = TrailReader(tmp_path)
    verdict = reader.verify()
    kept = [event.facts["id"] for event in reader.tail(verdict.checked)]
    assert (verdict.ok, verdict.first_bad, verdict.checked, reader.integrity()) == (True, None, len(set(kept)), [])
    assert sorted({*given} - {*kept}) == []
    assert sorted({*given} - {*reader.receipts(100_000)}) == []
    assert len(given) >= 8
    # What a process had appended is there in its order and without gaps, up to the batch in which it died.
    for name in {each.partition("-")[0] for each in kept}:
        mine = [each for each in kept if each.startswith(f"{name}-")]
        assert mine == [f"{name}-{number}" for number in range(1, len(mine) + 1)]


@pytest.mark.campaign
def test_eight_processes_make_one_key(tmp_path):
    """The first of eight processes makes the key; the others read the whole key."""
    makers = [start(KEY, tmp_path) for _ in range(8)]
    for maker in makers:
        maker.stdin.write("x")
        maker.stdin.flush()
    keys = [maker.communicate()[0].strip() for maker in makers]

    assert {*keys} == {(tmp_path / "audit.key").read_text().strip()}
    assert [maker.returncode for maker in makers] == [0] * 8
    assert [each.name for each in tmp_path.iterdir()] == ["audit.key"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_leaves_the_trail_alone(tmp_path):
    """A forked child gets an error instead of the trail and harms nothing; the parent goes on."""
    parent = start(FORKER, tmp_path)

    assert parent.communicate()[0].split() == ["0", "0", "3"]
