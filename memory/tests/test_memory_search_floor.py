"""The least score, through the engine: a memory that does not fit a question is not found."""

from datetime import UTC, datetime

import pytest

from beaver_memory.embedding.calibration import BY_WORDS
from beaver_memory.engine import MemoryEngine
from beaver_memory.filters import Filters
from beaver_memory.query import Query
from beaver_memory.records import NewMemory
from beaver_memory.search.formulas import FORMULAS
from beaver_memory.views import View

LEAST = BY_WORDS.floor
STABLE = "Billing is deployed from the branch stable."
OTHERS = (
    "The office closes at six on Fridays.",
    "Ann prefers tea over coffee.",
    "The staging database is restored every Monday.",
    "Dana keeps the keys of the archive.",
)


@pytest.fixture
def engine(tmp_path):
    with MemoryEngine.open(tmp_path) as made:
        yield made


def found(engine, text, **asked):
    """Return titles and scores of the hits with the least score of a recall."""
    query = Query(
        **{
            "text": text,
            "filters": Filters(view=View(now=datetime.now(UTC))),
            "minimum_score": LEAST,
            "limit": 3,
            **asked,
        }
    )
    return [(hit.memory.title, round(hit.score, 6)) for hit in engine.search(query).hits]


@pytest.mark.shows("003-099")
@pytest.mark.parametrize("formula", sorted(FORMULAS))
def test_a_single_memory(engine, formula):
    """A single memory is found by a question about it, and by no other question."""
    engine.add(NewMemory(title=STABLE))

    assert [(STABLE, 1.0)] == found(engine, "From which branch is billing deployed?", formula=formula)
    assert [] == found(
        engine, "Is there a branch of the national library in Turin that opens on Sundays?", formula=formula
    )
    assert [] == found(engine, "How do I cook rice for twelve people?", formula=formula)


def test_among_others(engine):
    """A question that shares half its words with a memory finds it, and one that shares a common word does not."""
    engine.add([NewMemory(title=title) for title in (STABLE, *OTHERS)])

    assert [STABLE] == [title for title, _ in found(engine, "Which branch does billing use, and since when?")]
    assert [] == found(engine, "Which office supplies does the school in Lisbon order for Christmas?")


def test_a_long_memory_among_short_ones(engine):
    """A long memory that has all words of a question fits it as well as a short one would."""
    about = ("garden", "kitchen", "boat", "piano", "cellar", "attic", "bridge", "orchard", "harbour", "stable", "forge")
    long = " ".join([*(f"They repaired the {each} with wood and rope." for each in about), OTHERS[3]])
    engine.add([NewMemory(title=title) for title in (long, *OTHERS[:3], *(f"Note {each}." for each in about))])

    assert [(long, 1.0)] == found(engine, "Who keeps the keys of the archive?")


def test_a_long_prompt(engine):
    """A long prompt finds the memory that a part of it is about."""
    engine.add([NewMemory(title=title) for title in (STABLE, *OTHERS)])
    prompt = (
        "Please look at the failing job and tell me what went wrong yesterday evening. I have restarted it twice, and "
        "the log shows a timeout while connecting. Billing should have been deployed from the branch stable already, "
        "but the version number on the page looks old to me, and nobody remembers changing anything in the pipeline."
    )

    assert [STABLE] == [title for title, _ in found(engine, prompt)][:1]


def test_the_order_without_a_least_score(engine):
    """Without a least score the nearest memory is found, with a score below the least score of a recall."""
    engine.add([NewMemory(title=title) for title in (STABLE, *OTHERS)])
    question = "Which office supplies does the school in Lisbon order for Christmas?"

    ((title, score),) = found(engine, question, minimum_score=0.0)
    assert (OTHERS[0], True) == (title, 0 < score < LEAST)
