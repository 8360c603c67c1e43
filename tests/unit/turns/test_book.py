"""Which turns are open, which were closed, and for how long that is known."""

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaver_hooks.turns import open_turn as module
from beaver_hooks.turns.open_turn import OpenTurns
from beaver_hostspecs import TurnAlreadyOpen, TurnClosed, UnknownTurn
from beaver_hostspecs.testing import FrozenClock

IDLE = 3600.0


@attrs.frozen(eq=False)
class _Opened:
    """The part of an open turn that the book needs."""

    id: str


@pytest.fixture
def book(clock):
    return OpenTurns(clock=clock, idle_seconds=IDLE)


def test_an_open_turn_is_found(book):
    """The book holds, finds and lists an open turn."""
    one, two = _Opened("1"), _Opened("2")
    book.enter(one)
    book.enter(two)

    assert ([one, two], 2, one, one, True) == (list(book), len(book), book.get("1"), book.find("1"), book.holds(one))


def test_another_turn_of_the_same_id_is_not_held(book):
    """The book tells a turn from another object with its id."""
    book.enter(_Opened("1"))

    assert (False, False) == (book.holds(_Opened("1")), book.close(_Opened("1")))


def test_an_id_is_open_once(book):
    """A second turn with an open id is refused, and the first one stays."""
    first = _Opened("1")
    book.enter(first)

    with pytest.raises(TurnAlreadyOpen) as caught:
        book.enter(_Opened("1"))

    assert "a turn with this id is open; commit or drop it first, or give each turn its own id" == str(caught.value)
    assert book.holds(first)


@pytest.mark.shows("003-104")
def test_a_turn_is_closed_once(book):
    """Closing again changes nothing, and the id is known to have been closed."""
    opened = _Opened("1")
    book.enter(opened)

    assert (True, False, None) == (book.close(opened), book.close(opened), book.get("1"))
    with pytest.raises(TurnClosed) as found:
        book.find("1")
    with pytest.raises(TurnClosed) as entered:
        book.enter(_Opened("1"))
    assert (
        "this turn was committed or dropped before",
        "a turn with this id was closed; give each turn its own id",
    ) == (
        str(found.value),
        str(entered.value),
    )


def test_an_unknown_id_is_said_to_be_unknown(book):
    """An id that was never opened is neither open nor closed."""
    with pytest.raises(UnknownTurn) as caught:
        book.find("1")

    assert "no turn with this id is open in this host" == str(caught.value)


def test_a_turn_is_overdue_after_an_idle_hour(book, clock):
    """The older turns are overdue, oldest first; the younger ones are not looked at."""
    turns = [_Opened(str(number)) for number in range(3)]
    for opened in turns[:2]:
        book.enter(opened)
    clock.advance(1)
    book.enter(turns[2])
    clock.advance(IDLE - 1.5)
    early = book.overdue()
    clock.advance(0.5)
    late = book.overdue()
    clock.advance(1)

    assert ([], turns[:2], turns) == (early, late, book.overdue())


def test_a_closed_id_is_forgotten_after_an_idle_hour(book, clock):
    """The book does not grow with the turns of the past."""
    opened = _Opened("1")
    book.enter(opened)
    book.close(opened)
    clock.advance(IDLE)
    book.overdue()

    with pytest.raises(UnknownTurn):
        book.find("1")


def test_not_too_many_closed_ids_are_remembered(book, monkeypatch):
    """Beyond the limit, the book forgets the oldest closed id within the hour."""
    monkeypatch.setattr(module, "MOST_CLOSED", 2)
    for turn_id in "123":
        opened = _Opened(turn_id)
        book.enter(opened)
        book.close(opened)

    with pytest.raises(UnknownTurn):
        book.find("1")
    with pytest.raises(TurnClosed):
        book.find("2")


_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("enter"), st.sampled_from("abc")),
        st.tuples(st.just("close"), st.sampled_from("abc")),
        st.tuples(st.just("wait"), st.sampled_from([1.0, IDLE / 2, IDLE])),
    ),
    max_size=30,
)


@given(_STEPS)
def test_the_book_agrees_with_a_simple_one(steps):
    """After any steps, open turns, closed ids and overdue turns equal those of a plain model."""
    clock = FrozenClock()
    book = OpenTurns(clock=clock, idle_seconds=IDLE)
    opened, closed = {}, {}
    for step, value in steps:
        if step == "enter" and value not in opened and value not in closed:
            opened[value] = (_Opened(value), clock.monotonic())
            book.enter(opened[value][0])
        elif step == "close" and value in opened:
            assert book.close(opened.pop(value)[0])
            closed[value] = clock.monotonic()
        elif step == "wait":
            clock.advance(value)
            young = clock.monotonic() - IDLE
            closed = {each: since for each, since in closed.items() if since > young}
            assert [each for each, since in opened.values() if since <= young] == book.overdue()
    assert [each for each, _ in opened.values()] == list(book)
    assert {each: _state(book, each) for each in "abc"} == {
        each: "open" if each in opened else "closed" if each in closed else "unknown" for each in "abc"
    }


def _state(book, turn_id):
    try:
        book.find(turn_id)
    except TurnClosed:
        return "closed"
    except UnknownTurn:
        return "unknown"
    return "open"
