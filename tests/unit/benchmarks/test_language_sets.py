"""The made-up conversations in three languages: parallel, natural in size, and the same in every run."""

import importlib
import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[3] / "benchmarks" / "local"


@pytest.fixture(scope="module")
def kit():
    """The module that makes the conversations."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(FOLDER)
        yield importlib.import_module("kit_languages")


@pytest.fixture(scope="module")
def cases(kit):
    """The halves of each language."""
    return {language: kit.conversations(language) for language in kit.LANGUAGES}


def shape(case):
    """Return what all languages share: the order of speakers, sessions and times, and the evidence of each question."""
    items = [(item.key, item.session, item.speaker, item.when) for item in case.items]
    return items, [question.evidence for question in case.questions]


def test_languages_are_parallel(cases):
    """The languages differ in their texts alone, and each has 200 questions about more than 600 memories."""
    shapes = [[shape(case) for case in halves] for halves in cases.values()]

    assert [shapes[0]] * 3 == shapes
    assert [100, 100] == [len(questions) for _, questions in shapes[0]]
    assert 600 < sum(len(items) for items, _ in shapes[0])


def test_tables_are_parallel(kit):
    """Each file has the same kinds with as many phrasings, statements and values."""

    def counts(texts):
        return {
            (table, kind): [len(known["said"]), len(known["ask"]), len(known.get("x", ()))]
            + [len(re.split(r"\||//", said)) for said in known["said"]]
            for table in kit.TABLES
            for kind, known in texts[table].items()
        }

    found = [counts(kit.texts_of(language)) for language in kit.LANGUAGES]

    assert [found[0]] * 3 == found


def test_the_set_is_the_same_in_every_run(kit, cases):
    """A second call makes the same conversations, and no slot of a text stays open."""
    again = {language: kit.conversations(language) for language in kit.LANGUAGES}
    texts = [each.text for halves in cases.values() for case in halves for each in (*case.items, *case.questions)]

    assert again == cases
    assert [] == [text for text in texts if re.search(r"[{}|]|//", text)]


def test_no_fact_is_there_twice(cases):
    """Within a half the user says nothing twice."""
    said = [
        [item.text for item in case.items if item.speaker == "user"] for halves in cases.values() for case in halves
    ]

    assert [len(each) for each in said] == [len(set(each)) for each in said]


def test_days_in_chinese(kit):
    """Days are written in Chinese numerals."""
    assert ["五", "十", "十四", "二十", "二十八"] == [kit._numeral(day) for day in (5, 10, 14, 20, 28)]
