"""Reports, as tables and as JSON."""

import json

import attrs
from hypothesis import given
from hypothesis import strategies as st

from beaver_hostspecs.conformance import (
    Card,
    Examined,
    Outcome,
    PluginCard,
    Verdict,
    as_json,
    as_markdown,
    cards_as_markdown,
)

TEXTS = st.text(max_size=20)
VERDICTS = st.builds(Verdict, case=TEXTS, outcome=st.sampled_from(Outcome), flag=TEXTS, reason=TEXTS)


def cards(kind, name):
    flags = {each.name: st.booleans() for each in attrs.fields(kind) if each.type is bool}
    notes = st.dictionaries(st.sampled_from([*flags]), TEXTS)
    return st.builds(kind, **{name: TEXTS}, **flags, notes=notes)


EXAMINED = st.builds(
    Examined,
    name=TEXTS,
    verdicts=st.lists(VERDICTS, max_size=4).map(tuple),
    card=st.none() | cards(Card, "host") | cards(PluginCard, "plugin"),
)

ONE = Examined(
    name="one",
    verdicts=(
        Verdict(case="normal", outcome=Outcome.PASSED),
        Verdict(case="sync entry point", outcome=Outcome.EXCUSED, flag="sync", reason="It has no such thing."),
        Verdict(case="guardrail", outcome=Outcome.FAILED, reason="AssertionError: it is\nnot | so"),
    ),
    card=Card(host="one", sync=False),
)
OTHER = Examined(
    name="other",
    verdicts=(
        Verdict(case="normal", outcome=Outcome.FAILED),
        Verdict(case="user", outcome=Outcome.EXCUSED, flag="has_user_id"),
    ),
)

TABLE = """\
| case | one | other |
| --- | --- | --- |
| normal | yes | **no** |
| sync entry point | excused |  |
| guardrail | **no** |  |
| user |  | excused |

- one, guardrail: failed. AssertionError: it is not | so
- one, sync entry point: excused by `sync`. It has no such thing.
- other, normal: failed.
- other, user: excused by `has_user_id`.
"""

CARDS = """\
|  | one | other |
| --- | --- | --- |
| reference placement | before history | before user |
| reference persistence | ephemeral | persisted |
| reference role | user | system |
| system prompt | yes | yes |
| sees errors | yes | yes |
| sees cancellation | yes | yes |
| sees blocks | yes | yes |
| sees tools | yes | yes |
| sees tool errors | yes | yes |
| offers tools | yes | yes |
| has user id | yes | yes |
| streaming | yes | no |
| sync | no | yes |
| parallel | yes | yes |
| unregister | yes | yes |
| keeps health | yes | yes |
| announces compaction | no | no |
"""


def test_the_table():
    """There is a row for each case, a column for each that was examined, and every failure and excuse below."""
    assert TABLE == as_markdown([ONE, OTHER])


def test_a_table_without_notes():
    """A table without failures and excuses has no notes below it."""
    passed = Examined(name="one", verdicts=(Verdict(case="normal", outcome=Outcome.PASSED),))

    assert "| case | one |\n| --- | --- |\n| normal | yes |\n" == as_markdown([passed])


def test_the_table_of_cards():
    """There is a row for each field of the cards but names and notes."""
    other = Card(
        host="other",
        reference_placement="before_user",
        reference_persistence="persisted",
        reference_role="system",
        streaming=False,
    )

    assert CARDS == cards_as_markdown([ONE.card, other])


def test_failures_and_excuses():
    """An examination tells its failures and its excuses apart."""
    _, excused, failed = ONE.verdicts

    assert ((failed,), (excused,)) == (ONE.failures, ONE.excuses)


def test_json_is_plain():
    """The JSON holds what the records hold, by the names of their fields."""
    (data,) = json.loads(as_json([OTHER]))
    verdict = {"case": "user", "outcome": "excused", "flag": "has_user_id", "reason": ""}

    assert ("other", None, verdict) == (data["name"], data["card"], data["verdicts"][1])


@given(st.lists(EXAMINED, max_size=3))
def test_json_comes_back(examined):
    """JSON of any examinations is read back unchanged."""
    assert examined == [Examined.from_dict(each) for each in json.loads(as_json(examined))]


@given(st.lists(EXAMINED, max_size=3))
def test_every_row_has_every_column(examined):
    """Whatever names and reasons hold, the table stays a table, and each note is one line."""
    lines = as_markdown(examined).split("\n")
    table = [line for line in lines if line.startswith("|")]
    noted = sum(len(each.failures) + len(each.excuses) for each in examined)
    cases = {verdict.case for each in examined for verdict in each.verdicts}

    assert {len(examined) + 2} == {line.replace("\\|", "").count("|") for line in table}
    assert len(cases) + 2 == len(table)
    assert noted == sum(line.startswith("- ") for line in lines)
