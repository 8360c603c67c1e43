"""The bodies that go out and the answers that come back."""

import json
from datetime import UTC, datetime, timedelta, timezone
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaver_hooks_gateway import GatewaySettings
from beaver_hooks_gateway.testing import problem_of
from beaver_hooks_gateway.wire import (
    LONGEST_VALUE,
    MOST_CHARACTERS,
    MalformedError,
    RecalledMemory,
    Result,
    add_body,
    chat,
    encode,
    flush_body,
    mapped,
    milliseconds,
    parse_found,
    parse_object,
    search_body,
)
from beaver_hostspecs import Secret
from beaver_hostspecs.testing import make_answer, make_turn

ASKED = datetime(2026, 5, 28, 20, 26, 40, tzinfo=UTC)
SETTINGS = GatewaySettings(user_id="u1", user_key=Secret("uk_of_the_wire"), app_id="a1", project_id="p1")


def sent(body):
    """Return a body as the server parses it."""
    return json.loads(encode(body))


def make_pair():
    turn = make_turn(session="s1", prompt="Why?", when=ASKED, user="ann")
    return turn, make_answer(text="Because.", when=ASKED + timedelta(seconds=1))


@pytest.mark.shows("000-067", "000-131", "001-025", "001-048", "001-053", "001-100")
def test_search():
    """A search has exactly these eight fields, in this order."""
    body = search_body(SETTINGS, session="s1", query="Why?", top_k=8)

    assert (
        b'{"user_id":"u1","user_key":"uk_of_the_wire","conversation_id":"s1","query":"Why?",'
        b'"scope":["current_chat","resources"],"top_k":8,"app_id":"a1","project_id":"p1"}'
    ) == encode(body)


@pytest.mark.shows("000-087", "000-088", "000-089", "000-090", "000-093", "000-094", "000-131", "001-007", "001-048")
@pytest.mark.shows("001-066", "001-067", "001-068", "001-070", "001-090", "001-100")
def test_add():
    """An add has the configured identity and not the turn's user, the chat, and exactly two messages in order of time."""
    assert {
        "user_id": "u1",
        "user_key": "uk_of_the_wire",
        "session_id": "chat:s1",
        "app_id": "a1",
        "project_id": "p1",
        "messages": [
            {"sender_id": "u1", "role": "user", "timestamp": 1780000000000, "content": "Why?"},
            {"sender_id": "beaver", "role": "assistant", "timestamp": 1780000001000, "content": "Because."},
        ],
    } == sent(add_body(SETTINGS, *make_pair()))


@pytest.mark.shows("000-094", "000-131", "001-071", "001-100")
def test_flush():
    """A flush has the same identity and chat as the add before it, and nothing more."""
    added = sent(add_body(SETTINGS, *make_pair()))
    del added["messages"]

    assert added == sent(flush_body(SETTINGS, session="s1"))


def test_a_body_does_not_show_the_key():
    """The `repr` of a body does not show the key."""
    assert "uk_of" not in repr(add_body(SETTINGS, *make_pair()))


def test_a_body_holds_nothing_else():
    """Encoding refuses a value that is neither JSON nor the key."""
    with pytest.raises(TypeError, match=r"^a request cannot hold a object$"):
        encode({"a": object()})


@pytest.mark.shows("000-091", "001-069")
@given(
    st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=5, minutes=30))])),
    st.datetimes(timezones=st.just(UTC)),
)
def test_times_are_positive_and_grow(asked, answered):
    """Both times are positive, and the answer's is later than the prompt's, whatever the clocks say."""
    turn, answer = make_turn(when=asked), make_answer(when=answered)
    first, second = (each["timestamp"] for each in add_body(SETTINGS, turn, answer)["messages"])

    assert 0 < first < second
    assert max(1, milliseconds(asked)) == first


TEXT = st.text(alphabet=st.characters(exclude_categories=[]), min_size=1, max_size=200)


@given(TEXT.filter(str.strip), TEXT, TEXT)
def test_any_text_can_be_sent(session, prompt, answer):
    """Any turn makes bodies that a strict gateway accepts, with its texts unchanged except for lone surrogates."""
    turn = make_turn(session=session, prompt=f"-{prompt}", when=ASKED)
    body = sent(add_body(SETTINGS, turn, make_answer(text=f"-{answer}", when=ASKED)))
    search = sent(search_body(SETTINGS, session=session, query=f"-{prompt}", top_k=1))

    assert (None, None) == (problem_of("add", body), problem_of("search", search))
    whole = prompt.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    assert (f"-{whole}", f"-{whole}") == (body["messages"][0]["content"], search["query"])
    assert f"chat:{search['conversation_id']}" == body["session_id"]


@pytest.mark.parametrize(
    ("session", "expected"),
    [
        ("s1", "s1"),
        ("a" * 123, "a" * 123),
        ("a" * 124, f"sha256-{sha256(b'a' * 124).hexdigest()}"),
        ("\ud800", f"sha256-{sha256(bytes.fromhex('eda080')).hexdigest()}"),
    ],
)
def test_a_session_keeps_its_id(session, expected):
    """A session's id is sent unchanged, or as a constant hash if a gateway would not accept it."""
    assert (expected, f"chat:{expected}") == (mapped(session), chat(session))


@given(TEXT.map(lambda text: text * 20), TEXT.map(lambda text: text * 20))
def test_two_sessions_stay_two(one, other):
    """Different ids stay different."""
    assert (one == other) == (mapped(one) == mapped(other))


FULL = {
    "id": "ep_1",
    "session_id": "chat:s0",
    "text": "We chose it.",
    "score": 0.25,
    "source_scope": "resources",
    "resource_uri": "file:///notes.md",
}


def found(*items, most=8):
    return parse_found(json.dumps({"results": [*items], "request_id": "r1"}).encode(), most=most)


@pytest.mark.shows("000-070", "000-071", "000-122", "000-135", "001-056", "001-057", "001-094", "001-105")
def test_six_fields_are_kept():
    """A result is reduced to six fields; `raw` and everything else is gone."""
    expected = RecalledMemory(results=(Result(**FULL),), total=1)

    assert expected == found(FULL | {"raw": {"secret": "x"}, "embedding": [1, 2]})
    assert "secret" not in repr(expected)


@pytest.mark.parametrize(
    "item", [{}, {"text": ""}, {"text": " \n"}, {"text": 5}, {"text": None}, {"id": "x"}, "text", None, 5, ["text"]]
)
def test_unusable_results_are_dropped_and_counted(item):
    """A result without a text is none; how many there were is known."""
    assert RecalledMemory(results=(Result(text="a"),), total=2) == found(item, {"text": "a"})


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("id", 5, "5"),
        ("id", True, None),
        ("id", 2**70, None),
        ("id", "", None),
        ("id", {"a": 1}, None),
        ("id", "x" * 1000, "x" * LONGEST_VALUE),
        ("score", "0.5", None),
        ("score", True, None),
        ("score", 1, 1.0),
        ("score", 10**400, None),
        ("score", None, None),
        ("source_scope", ["resources"], None),
        ("session_id", 1.5, None),
        ("resource_uri", " ", None),
    ],
)
def test_a_field_of_another_type_counts_as_absent(field, value, expected):
    """A result's field of a wrong type is left out, and a number as an id becomes text."""
    (result,) = found({"text": "a", field: value}).results

    assert expected == getattr(result, field)


def test_a_score_beyond_every_number_counts_as_absent():
    """A score that is read as infinite is left out."""
    (result,) = parse_found(b'{"results":[{"text":"a","score":1e999}]}', most=8).results

    assert None is result.score


def test_no_more_than_was_asked_for():
    """A gateway that sends more results than it was asked for is cut."""
    assert (3, 10) == ((len((got := found(*[FULL] * 10, most=3)).results)), got.total)


def test_no_more_than_a_host_takes():
    """Results are cut to the most characters that a host accepts."""
    half = "x" * (MOST_CHARACTERS // 2)
    got = found({"text": half}, {"text": half + "y" * 10}, {"text": "z"})

    assert (2, 3, MOST_CHARACTERS) == (len(got.results), got.total, sum(len(each.text) for each in got.results))
    assert 1 == len(found({"text": half * 3}, {"text": "z"}).results)


@pytest.mark.shows("000-058", "000-068", "000-069", "001-054")
@pytest.mark.parametrize(
    ("body", "category"),
    [
        (b"", "invalid_json"),
        (b"null", "invalid_shape"),
        (b"[]", "invalid_shape"),
        (b"{}", "invalid_shape"),
        (b'{"results":null}', "invalid_shape"),
        (b'{"results":{}}', "invalid_shape"),
        (b'{"data":{"results":[]}}', "invalid_shape"),
        (b'{"results":[],"results":[]}', "invalid_shape"),
        (b'{"results":[{"text":"a","text":"b"}]}', "invalid_shape"),
        (b'{"results":[{"text":"a","score":1,"score":1}]}', "invalid_shape"),
        (rb'{"results":[{"text":"a","id":"\udc00"}]}', "invalid_json"),
        (rb'{"results":[{"text":"\ud800"}]}', "invalid_json"),
        (b'{"results":[{"text":"a","score":NaN}]}', "invalid_json"),
    ],
)
def test_malformed_answers(body, category):
    """A malformed answer is refused as a whole."""
    with pytest.raises(MalformedError) as caught:
        parse_found(body, most=8)

    assert category == caught.value.category


def test_what_is_not_read_may_be_anything():
    """Repeated keys and odd texts in unread fields do not matter."""
    body = rb'{"results":[{"text":"a","raw":{"x":1,"x":2,"y":"\ud800"},"other":1,"other":2}],"n":1,"n":2}'

    assert RecalledMemory(results=(Result(text="a"),), total=1) == parse_found(body, most=8)


def test_any_object_confirms():
    """The answer to an add or a flush is any JSON object; another answer is refused."""
    assert [{}, {"status": "extracted"}, {"a": 2}] == [
        parse_object(body) for body in (b"{}", b'{"status":"extracted"}', b'{"a":1,"a":2}')
    ]
    for body, category in ((b"", "invalid_json"), (b"true", "invalid_shape")):
        with pytest.raises(MalformedError, match=f"^{category}$"):
            parse_object(body)


RESULTS = st.lists(
    st.dictionaries(
        st.sampled_from([*FULL, "raw"]),
        st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.text(), max_size=2),
    )
    | st.text(),
    max_size=12,
)


@given(RESULTS, st.integers(1, 10))
def test_any_results(items, most):
    """Any results give the usable ones in their order, or the typed error."""
    try:
        got = parse_found(json.dumps({"results": items}).encode(), most=most)
    except MalformedError:
        assert "NaN" in json.dumps(items) or "Infinity" in json.dumps(items)
        return
    usable = [each["text"] for each in items if isinstance(each, dict) and isinstance(each.get("text"), str)]
    assert [text for text in usable if text.strip()][:most] == [each.text for each in got.results]
    assert len(items) == got.total
