"""Rules for the queue of turns: none is lost, none is claimed twice, and each is recorded as captured once."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

from beaver_memory.records import Owner, QueuedSession, Store
from beaver_memory.store.turn_queue import IDLE, INTERRUPTED, LEASE, LONGEST_PAUSE, MOST_ATTEMPTS, QueuedTurn
from beaver_memory.testing.store_cases.kit import NOW, OpenStore, agree, using
from beaver_memory.views import ALL_PROJECTS, EVERYTHING, Reach

ANN, BOB = (Owner(tenant="acme", user=name) for name in ("ann", "bob"))
HERE = QueuedSession(owner=ANN, session="s1", project="p", agent="a", store=Store.SHARED)
ELSEWHERE = QueuedSession(owner=ANN, session="s2")
SECOND = timedelta(seconds=1)
SOON = NOW + SECOND


def _turn(name: str, place: QueuedSession = HERE) -> QueuedTurn:
    return QueuedTurn(place=place, turn=name, content=f'{{"said": "{name}"}}', queued_at=NOW)


def _names(turns: list[QueuedTurn]) -> list[str]:
    return [each.turn for each in turns]


def turns_wait(open_store: OpenStore) -> None:
    """A turn waits in every open store with all its fields, once, and of its owner alone."""
    with using(open_store) as store, using(open_store) as other:
        agree([], store.queue.owners(None))
        agree([True, False], [each.queue.put(_turn("t1")) for each in (store, other)])
        agree([True, True], [store.queue.put(_turn(name)) for name in ("t\ud8002", "t3")])
        (found, *_) = other.queue.waiting(ANN, ALL_PROJECTS, limit=9)
        expected = QueuedTurn(
            place=HERE, turn="t1", content='{"said": "t1"}', queued_at=NOW, due_at=NOW + IDLE, key=found.key
        )
        agree((expected, True), (found, found.is_whole))
        agree(["t1", "t\ufffd2"], _names(other.queue.waiting(ANN, ALL_PROJECTS, limit=2)))
        agree([], other.queue.waiting(BOB, ALL_PROJECTS, limit=9))
        agree(([ANN], []), (other.queue.owners(None), store.owners(None)))


def a_claim(open_store: OpenStore) -> None:
    """The turns of a session are claimed in order and once, until they are finished, and recorded as captured."""
    with using(open_store) as store, using(open_store) as other:
        for each in (_turn("t1"), _turn("u1", ELSEWHERE), _turn("t2"), _turn("t3")):
            store.queue.put(each)
        first = store.queue.claim(HERE, NOW, limit=2)
        rest = other.queue.claim(HERE, NOW, limit=9)
        agree((["t1", "t2"], ["t3"], []), (_names(first), _names(rest), store.queue.claim(HERE, NOW, limit=9)))
        agree([(1, NOW + LEASE)] * 3, [(each.attempts, each.due_at) for each in (*first, *rest)])
        store.queue.finish([])
        store.queue.finish(first)
        agree({"t1", "t2"}, other.captured(ANN, ["t1", "t2", "t3", "u1"]))
        agree(["u1", "t3"], _names(other.queue.waiting(ANN, ALL_PROJECTS, limit=9)))


def what_is_due(open_store: OpenStore) -> None:
    """A session is due when it was silent for a while, when a claim or a pause ended, or the clock went back."""
    with using(open_store) as store:
        store.queue.put(_turn("t1"))
        agree([], store.queue.sessions(NOW, EVERYTHING, limit=9))
        agree(([], [HERE]), tuple(store.queue.sessions(NOW, EVERYTHING, limit=9, before=each) for each in (NOW, SOON)))
        agree([HERE], store.queue.sessions(NOW + IDLE, EVERYTHING, limit=9))
        claimed = store.queue.claim(HERE, NOW, limit=9)
        agree([], store.queue.sessions(NOW + LEASE - SECOND, EVERYTHING, limit=9, before=SOON))
        agree([HERE], store.queue.sessions(NOW + LEASE, EVERYTHING, limit=9))
        store.queue.postpone(claimed, NOW + SECOND, "locked")
        agree([], store.queue.claim(HERE, NOW, limit=9))
        agree([HERE], store.queue.sessions(NOW + SECOND, EVERYTHING, limit=9))
        agree([HERE], store.queue.sessions(NOW - LONGEST_PAUSE - IDLE, EVERYTHING, limit=9))
        agree([], store.queue.sessions(NOW + LEASE, EVERYTHING, limit=0))
        (again,) = store.queue.claim(HERE, NOW + SECOND, limit=9)
        agree((2, "locked"), (again.attempts, again.error))


def a_claim_that_was_taken_over(open_store: OpenStore) -> None:
    """A worker whose claim has ended changes nothing of the turn that another one has claimed since."""
    with using(open_store) as store, using(open_store) as other:
        store.queue.put(_turn("t1"))
        late = store.queue.claim(HERE, NOW, limit=9)
        (taken,) = other.queue.claim(HERE, NOW + LEASE, limit=9)
        store.queue.postpone(late, None, "locked")
        store.queue.finish(late)
        agree([taken], other.queue.waiting(ANN, ALL_PROJECTS, limit=9))


def parked_turns(open_store: OpenStore) -> None:
    """A turn that a worker parks, or that too many workers left, waits until it is retried or dropped."""
    with using(open_store) as store:
        for name in ("t1", "t2"):
            store.queue.put(_turn(name))
        store.queue.postpone(store.queue.claim(HERE, NOW, limit=1), None, "ValueError")
        now = NOW
        for _ in range(MOST_ATTEMPTS):
            store.queue.claim(HERE, now, limit=9)
            now += LEASE
        agree([], store.queue.claim(HERE, now, limit=9))
        found = store.queue.waiting(ANN, ALL_PROJECTS, limit=9)
        agree([("t1", True, "ValueError"), ("t2", True, INTERRUPTED)], [(e.turn, e.is_parked, e.error) for e in found])
        agree([], store.queue.sessions(now + LONGEST_PAUSE, EVERYTHING, limit=9, before=SOON))
        agree(
            (0, 1, 1),
            (
                store.queue.retry(BOB, ALL_PROJECTS, now),
                store.queue.retry(ANN, ALL_PROJECTS, now, found[0].key),
                store.queue.retry(ANN, ALL_PROJECTS, now),
            ),
        )
        again = store.queue.claim(HERE, now, limit=9)
        agree([(1, ""), (1, "")], [(each.attempts, each.error) for each in again])
        drops = [store.queue.drop(owner, found[0].key) for owner in (BOB, ANN, ANN)]
        agree(([False, True, False], ["t2"]), (drops, _names(store.queue.waiting(ANN, ALL_PROJECTS, limit=9))))


def erased_turns(open_store: OpenStore) -> None:
    """The waiting turns of an owner are erased, all or those of one session, and no others."""
    with using(open_store) as store:
        places = (
            HERE,
            ELSEWHERE,
            QueuedSession(owner=BOB, session="s1"),
            QueuedSession(owner=Owner(user="ann"), session="s1"),
        )
        for place in places:
            store.queue.put(_turn("t", place))
        agree(
            (1, 0),
            (
                store.queue.erase(ANN, ALL_PROJECTS, "s1"),
                store.queue.erase(ANN, ALL_PROJECTS, "s1"),
            ),
        )
        agree(
            [0, 1, 1, 1],
            [len([t for t in store.queue.waiting(p.owner, ALL_PROJECTS, limit=9) if t.place == p]) for p in places],
        )
        agree(1, store.queue.erase(ANN, ALL_PROJECTS))
        agree({BOB, Owner(user="ann")}, {*store.queue.owners(None)})
        agree([], store.check(None))


def turns_of_a_project(open_store: OpenStore) -> None:
    """The turns of a tenant and of a project are found, retried and erased without those of others."""
    acme, beta = ANN, Owner(tenant="beta", user="ann")
    with using(open_store) as store:
        places = [QueuedSession(owner=owner, project=name) for owner in (acme, beta) for name in ("", "p", "q")]
        for place in places:
            store.queue.put(_turn("t", place))
        now = NOW + IDLE
        for tenant, owner in (("acme", acme), ("beta", beta)):
            for name in ("", "p", "q"):
                here = QueuedSession(owner=owner, project=name)
                agree([here], store.queue.sessions(now, Reach(tenant, name or None), limit=9))
                agree([here], [each.place for each in store.queue.waiting(owner, name or None, limit=9)])
            agree([owner], store.queue.owners(tenant))
        agree(3, len(store.queue.sessions(now, Reach("acme", ALL_PROJECTS), limit=9)))
        agree(6, len(store.queue.sessions(now, EVERYTHING, limit=9)))
        for place in places:
            store.queue.postpone(store.queue.claim(place, now, limit=9), None, "locked")
        agree(
            (1, 2),
            (store.queue.retry(acme, "p", now), store.queue.retry(acme, ALL_PROJECTS, now)),
        )
        agree((1, 2), (store.queue.erase(acme, "q"), store.queue.erase(acme, ALL_PROJECTS)))
        agree(3, len(store.queue.waiting(beta, ALL_PROJECTS, limit=9)))


def workers_side_by_side(open_store: OpenStore) -> None:
    """Workers that claim at once share the turns: each turn is claimed by one of them."""
    with using(open_store) as store, using(open_store) as other, ThreadPoolExecutor(4) as threads:
        for number in range(12):
            store.queue.put(_turn(f"t{number}"))
        claimed = threads.map(lambda each: each.queue.claim(HERE, NOW, limit=2), [store, other] * 10)
        agree(sorted(f"t{number}" for number in range(12)), sorted(turn.turn for turns in claimed for turn in turns))


CASES = (
    turns_wait,
    a_claim,
    what_is_due,
    a_claim_that_was_taken_over,
    parked_turns,
    erased_turns,
    turns_of_a_project,
    workers_side_by_side,
)
