"""The engine under load and under fire: threads, processes, and being killed while it adds."""

import json
import os
import signal
import subprocess
import sys
import threading
from datetime import UTC, datetime

import pytest

from beaver_memory.engine import MemoryEngine
from beaver_memory.filters import Filters
from beaver_memory.query import Query
from beaver_memory.records import NewMemory, Owner
from beaver_memory.views import View

KILLS = int(os.environ.get("BEAVER_LOCAL_KILLS", "2"))
SEEN = Filters(view=View(now=datetime(2036, 1, 1, tzinfo=UTC)))

ADDING = """
import sys
from beaver_memory.engine import MemoryEngine
from beaver_memory.search import index_cache
from beaver_memory.filters import Filters
from beaver_memory.query import Query
from beaver_memory.records import NewMemory
from beaver_memory.views import View
from datetime import UTC, datetime
index_cache.CHANGES = 5
seen = Filters(view=View(now=datetime(2036, 1, 1, tzinfo=UTC)))
engine, number = MemoryEngine.open(sys.argv[1]), int(sys.argv[2])
print("ready", flush=True)
while True:
    ids = engine.add([NewMemory(title=f"fact{number} said", session="s") for _ in range(number % 3 + 1)])
    print(number, len(ids), flush=True)
    engine.search(Query(text=f"fact{number}", filters=seen))
    number += 1
"""

SHARING = """
import json, sys
from datetime import UTC, datetime
from beaver_memory.engine import MemoryEngine
from beaver_memory.search import index_cache
from beaver_memory.filters import Filters
from beaver_memory.query import Query
from beaver_memory.records import NewMemory
from beaver_memory.views import View
index_cache.CHANGES = 20
seen = Filters(view=View(now=datetime(2036, 1, 1, tzinfo=UTC)))
folder, name = sys.argv[1:3]
with MemoryEngine.open(folder) as engine:
    print("ready", flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        found = []
        if "add" in order:
            engine.add(NewMemory(title=order["add"]))
        for word in order["look"]:
            found.append(len(engine.search(Query(text=word, filters=seen, limit=1)).hits))
        print(json.dumps(found), flush=True)
"""


@pytest.fixture
def started():
    """Start processes, and end each of them."""
    processes = []

    def start(script, *arguments):
        process = subprocess.Popen(
            [sys.executable, "-c", script, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        assert "ready\n" == process.stdout.readline()
        return process

    yield start
    for process in processes:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def found(engine, text, **asked):
    """Return the ids that a search finds, with their scores."""
    return [(hit.memory.id, hit.score) for hit in engine.search(Query(text=text, filters=SEEN, **asked)).hits]


@pytest.mark.campaign
def test_killed_while_adding(tmp_path, started):
    """Nothing acknowledged is lost, and after each kill the answers are those of an index made from nothing."""
    acknowledged, number = {}, 0
    for kill in range(KILLS):
        process = started(ADDING, tmp_path, number)
        for _ in range(3 + kill % 5):
            at, count = map(int, process.stdout.readline().split())
            acknowledged[at] = count
        process.send_signal(signal.SIGKILL)
        # What it has acknowledged in the meantime counts as well; the last line may be cut off.
        rest = process.stdout.read().splitlines(keepends=True)
        acknowledged |= {int(line.split()[0]): int(line.split()[1]) for line in rest if line.endswith("\n")}
        process.wait()
        number = max(acknowledged) + 2
    with MemoryEngine.open(tmp_path) as engine, MemoryEngine.open(tmp_path, indexes=None) as fresh:
        assert [] == engine.store.check(None)
        counts = {at: engine.search(Query(text=f"fact{at}", filters=SEEN, limit=100)).hits for at in acknowledged}
        titles = {at: sum(hit.memory.title == f"fact{at} said" for hit in hits) for at, hits in counts.items()}
        # The same words are one hit: those who say the same are shown once.
        assert dict.fromkeys(acknowledged, 1) == titles
        assert sum(acknowledged.values()) <= engine.store.count(Owner())
        for at in list(acknowledged)[:: max(1, len(acknowledged) // 50)]:
            assert found(fresh, f"fact{at}") == found(engine, f"fact{at}")
        assert found(fresh, "said", limit=50) == found(engine, "said", limit=50)


def test_threads(tmp_path):
    """Eight threads add, forget and search at once: no error, and each sees at once what it wrote."""
    troubles, start = [], threading.Barrier(8)

    def work(name):
        try:
            start.wait()
            for number in range(25):
                word = f"w{name}x{number}"
                (id_,) = engine.add(NewMemory(title=f"{word} common", session=f"s{name}"))
                assert found(engine, word, limit=1)[0][0] == id_
                assert found(engine, "common")
                if number % 3 == 0:
                    engine.forget([id_], SEEN)
                    assert id_ not in [each for each, _ in found(engine, word)]
        except BaseException as error:
            troubles.append(error)
            raise

    with MemoryEngine.open(tmp_path) as engine:
        threads = [threading.Thread(target=work, args=(name,)) for name in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [] == troubles
        with MemoryEngine.open(tmp_path, indexes=None) as fresh:
            assert found(fresh, "common", limit=30) == found(engine, "common", limit=30)
            assert 8 * 16 == fresh.store.count(Owner())


@pytest.mark.campaign
def test_processes(tmp_path, started):
    """Eight processes on one store: each finds at once what it wrote, and what others had acknowledged before."""
    MemoryEngine.open(tmp_path).close()
    processes = [started(SHARING, tmp_path, name) for name in range(8)]
    known = []
    for turn in range(6):
        words = [f"p{name}t{turn}" for name in range(8)]
        # All at once, in no fixed order, so each looks for its own and for those of the turns before.
        for process, word in zip(processes, words, strict=True):
            look = [word, *known[-16:]]
            process.stdin.write(json.dumps({"add": f"{word} shared", "look": look}) + "\n")
            process.stdin.flush()
        answers = [json.loads(process.stdout.readline()) for process in processes]
        assert [[1] * (1 + min(16, len(known)))] * 8 == answers
        known += words
    for process in processes:
        process.stdin.close()
        assert 0 == process.wait()
    with MemoryEngine.open(tmp_path) as engine, MemoryEngine.open(tmp_path, indexes=None) as fresh:
        assert [] == engine.store.check(None)
        assert found(fresh, "shared", limit=60) == found(engine, "shared", limit=60)
        assert 48 == len(found(engine, "shared", limit=60))
