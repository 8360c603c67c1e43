"""The dates that a text names, as seen from the day on which it was said."""

from datetime import UTC, date, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest
from case_files import rows
from hypothesis import given
from hypothesis import strategies as st

from beaver_memory.engine import MemoryEngine
from beaver_memory.filters import Filters
from beaver_memory.query import Query
from beaver_memory.records import NewMemory, Owner
from beaver_memory.search.dates import around, dates_of
from beaver_memory.views import View

DATA = Path(__file__).with_name("data")
WEDNESDAY = date(2023, 5, 10)
NOON = datetime(2023, 5, 10, 12, tzinfo=UTC)
EARLIER = datetime(2023, 1, 10, 12, tzinfo=UTC)
OWNER = Owner(user="u")


@pytest.mark.parametrize(("text", "dates"), rows(DATA / "dates.jsonl", "text", "dates"))
def test_the_dates_of_a_text(text, dates):
    """A text names days, weeks, months and years in ISO 8601, each once, and nothing else."""
    assert dates == dates_of(text, WEDNESDAY)


def test_only_some_dates_are_read():
    """The first sixteen dates of a text are read."""
    assert [str(year) for year in range(1950, 1966)] == dates_of(" ".join(map(str, range(1950, 2000))), WEDNESDAY)


WORDS = "last May 31 of 2023 vor 0 zwei Wochen ago in . 上周 末 前 十 月 99 日"


@given(st.lists(st.sampled_from(WORDS.split())))
def test_no_text_is_an_error(words):
    """Every date that is read from any text is one with a week and a month of its own, or wider than that."""
    for spaces in ("", " "):
        for found in dates_of(spaces.join(words), WEDNESDAY):
            assert found == around(found)[0]


@pytest.mark.parametrize(
    ("found", "wider"),
    [
        ("2021-01-02", ("2021-01-02", "2020-W53", "2021-01")),
        ("2020-W53", ("2020-W53", "2020-12")),
        ("2023-05", ("2023-05",)),
        ("2023", ("2023",)),
    ],
)
def test_a_date_lies_in_wider_ones(found, wider):
    """A day lies in a week and a month, and a week in the month of its Thursday."""
    assert wider == around(found)


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("I met Anna yesterday.", "Whom did I meet on May 9, 2023?"),
        ("Vor zwei Wochen traf ich Anna.", "Wen traf ich letzten Monat?"),
        ("我上周五见了安娜。", "5月5日我见了谁?"),
        ("I met Anna.", "Whom did I meet on 10 May?"),
    ],
)
def test_a_memory_is_found_by_its_dates(tmp_path, text, question):
    """A question that names the day finds the memory of that day before the same words of other days."""
    days = [datetime(2023, 5, day, 12, tzinfo=UTC) for day in (3, 10, 16)]
    now = datetime(2023, 5, 20, tzinfo=UTC)
    with MemoryEngine.open(tmp_path) as engine:
        first, *_ = engine.add([NewMemory(title=text, created_at=days[1], owner=OWNER)])
        others = [text.replace("Anna", name).replace("安娜", name) for name in ("Lena", "Mary")]
        created = [days[0].replace(month=2), days[2].replace(month=9, year=2022)]
        engine.add(
            [NewMemory(title=each, created_at=at, owner=OWNER) for each, at in zip(others, created, strict=True)]
        )
        found = engine.search(Query(text=question, filters=Filters(view=View(owners=(OWNER,), now=now))))
    assert first == found.hits[0].memory.id


def test_a_date_before_a_text_replaces_the_day(tmp_path):
    """A memory whose text begins with a date in brackets has that one, and not the day on which it was stored."""
    filters = Filters(view=View(owners=(OWNER,), now=datetime(2023, 5, 11, tzinfo=UTC)))
    with MemoryEngine.open(tmp_path) as engine:
        engine.add(NewMemory(title="[1 March 2023] Tea", created_at=datetime(2023, 5, 10, tzinfo=UTC), owner=OWNER))
        engine.add(NewMemory(title="[note] Tea", created_at=datetime(2023, 5, 11, tzinfo=UTC), owner=OWNER))
        found = [engine.search(Query(text=day, filters=filters)).hits for day in ("yesterday", "today")]
    assert [[], ["[note] Tea"]] == [[hit.memory.title for hit in hits] for hits in found]


def test_a_memory_without_a_time_has_the_day_of_its_writing(tmp_path):
    """A memory that does not say when it was made is found by the day on which it was stored."""
    with MemoryEngine.open(tmp_path, clock=SimpleNamespace(now=lambda: NOON, monotonic=lambda: 0.0)) as engine:
        engine.add([NewMemory(title="Tea", owner=OWNER), NewMemory(title="Rum", owner=OWNER, created_at=EARLIER)])
        found = engine.search(Query(text="today", filters=Filters(view=View(owners=(OWNER,), now=NOON))))
    assert ["Tea"] == [hit.memory.title for hit in found.hits]
