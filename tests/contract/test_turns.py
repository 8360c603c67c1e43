"""The records that every plugin gets."""

import inspect
from datetime import UTC, datetime, timedelta, timezone
from functools import partial

import attrs
import pytest

from beaver_hostspecs import (
    Actors,
    Answer,
    DropReason,
    HostRef,
    Message,
    RegisteredTool,
    Scope,
    ToolRegistry,
    ToolResult,
    Trust,
    Turn,
    thaw,
    turns,
)
from beaver_hostspecs.testing import make_answer, make_tool_result, make_turn

WHEN = datetime(2026, 5, 1, 12, tzinfo=UTC)
RECORDS = [kind for _, kind in inspect.getmembers(turns, attrs.has) if kind.__module__ == turns.__name__]


def make_reference(**fields):
    return HostRef(**{"kind": "ticket", "id": "1", **fields})


@pytest.mark.shows("002-034")
def test_four_fields_suffice():
    """A turn needs session, id, prompt and time, and every other field has a default."""
    turn = Turn(session="s", id="t", prompt="Hello", when=WHEN)

    assert {
        "session": "s",
        "id": "t",
        "prompt": "Hello",
        "when": WHEN,
        "conversation": "s",
        "user": None,
        "history": (),
        "scope": Scope(tenant=None, project=None, agent=None, channel=None),
        "actors": Actors(speaker=None, speaker_kind=None, subject=None, agent=None, trigger=None),
        "refs": (),
        "registry": None,
        "budget": None,
        "trust": Trust.PUBLIC,
    } == {field.name: getattr(turn, field.name) for field in attrs.fields(Turn) if field.name[0] != "_"}
    assert not turn.was_injected("Hello")


@pytest.mark.parametrize("missing", ["session", "id", "prompt", "when"])
def test_each_of_the_four_is_needed(missing):
    """Session, id, prompt and time are required."""
    four = dict(session="s", id="t", prompt="Hello", when=WHEN)
    del four[missing]

    with pytest.raises(TypeError, match=missing):
        Turn(**four)


def test_the_conversation_is_the_session_unless_it_is_named():
    """The conversation is the session's id unless the host names another one."""
    assert ("s", "c") == (
        make_turn(session="s").conversation,
        make_turn(session="s", conversation="c").conversation,
    )


@pytest.mark.parametrize(
    ("make", "name"),
    [
        *((make_turn, name) for name in ("session", "id", "conversation")),
        *((make_tool_result, name) for name in ("call_id", "tool")),
        *((make_reference, name) for name in ("kind", "id")),
    ],
)
@pytest.mark.parametrize("value", ["", None, 5])
def test_ids_are_named(make, name, value):
    """An empty id or kind, or one that is no str, is refused, without showing it."""
    with pytest.raises(ValueError) as caught:
        make(**{name: value})

    assert f"{name} must be a non-empty str" == str(caught.value)


@pytest.mark.parametrize("make", [make_turn, make_answer])
@pytest.mark.parametrize("when", [datetime(2026, 5, 1), "2026-05-01", None])  # noqa: DTZ001
def test_times_have_a_zone(make, when):
    """A naive datetime, or a value of another type, is refused, because it cannot be compared."""
    with pytest.raises(ValueError) as caught:
        make(when=when)

    assert "when must be a datetime with a time zone" == str(caught.value)


def test_any_zone_will_do():
    """Times of other zones are kept as they are."""
    when = datetime(2026, 5, 1, tzinfo=timezone(timedelta(hours=5)))

    assert when is make_turn(when=when).when


@pytest.mark.parametrize(
    ("make", "overrides"),
    [
        (make_turn, {"history": [{"role": "user", "text": "a dict"}]}),
        (make_turn, {"history": "text"}),
        (make_turn, {"refs": ["ticket"]}),
        (make_turn, {"scope": {}}),
        (make_turn, {"actors": None}),
        (make_answer, {"text": None}),
        (make_answer, {"messages": ["text"]}),
    ],
)
def test_other_types_are_refused(make, overrides):
    """A record refuses fields of a wrong type when it is made."""
    with pytest.raises(TypeError):
        make(**overrides)


OWNERS = [(make_turn, "user"), *((Scope, name) for name in ("tenant", "project", "agent", "channel"))]
"""Fields that name an owner; `None` stands for all owners."""

IDS = [
    *((Actors, name) for name in ("speaker", "speaker_kind", "subject", "agent", "trigger")),
    *((make_reference, name) for name in ("label", "relation")),
    *((partial(Message, role="user", text="hello"), name) for name in ("id", "speaker")),
    *((make_tool_result, name) for name in ("error", "registry", "summary")),
]


@pytest.mark.parametrize(("make", "name"), OWNERS)
@pytest.mark.parametrize("blank", ["", " ", "\t\n\u2003", 42])
def test_whose_it_is_is_named_or_none(make, name, blank):
    """A blank owner, or one that is not text, is refused, because it would count as none and stand for all owners."""
    with pytest.raises(ValueError) as caught:
        make(**{name: blank})

    assert f"{name} must be a str that is not blank, or None" == str(caught.value)
    assert [" a ", None] == [getattr(make(**{name: value}), name) for value in (" a ", None)]


@pytest.mark.parametrize(("make", "name"), IDS)
def test_what_may_be_left_out_is_text(make, name):
    """An id that is not text, such as a number, is refused, and an empty one is kept."""
    with pytest.raises(TypeError) as caught:
        make(**{name: 42})

    assert f"{name} must be a str or None" == str(caught.value)
    assert ["", None] == [getattr(make(**{name: value}), name) for value in ("", None)]


@pytest.mark.parametrize(
    ("make", "overrides", "expected"),
    [
        (make_turn, {"prompt": b"CANARY"}, "prompt must be a str"),
        (make_turn, {"scope": "CANARY"}, "scope must be a Scope"),
        (make_turn, {"actors": "CANARY"}, "actors must be an Actors"),
        (make_turn, {"registry": "CANARY"}, "registry must be a ToolRegistry or None"),
        (make_turn, {"trust": "CANARY"}, "not a valid Trust; it is one of `full`, `inner`, `familiar`, `public`"),
        (make_answer, {"stored": "CANARY"}, "stored must be True, False or None"),
        (make_tool_result, {"outcome": "CANARY"}, "outcome must be `success` or `error`"),
        (make_tool_result, {"arguments": "CANARY"}, "arguments must be a mapping"),
        (make_tool_result, {"duration": 1.5}, "duration must be a timedelta or None"),
        (make_tool_result, {"external": "CANARY"}, "external must be True or False"),
        (make_tool_result, {"private": 1}, "private must be True or False"),
        (Message, {"role": "CANARY", "text": "t"}, "role must be `user` or `assistant` or `system` or `tool`"),
        (Message, {"role": "user", "text": "t", "when": "CANARY"}, "when must be a datetime with a time zone"),
        (RegisteredTool, {"id": 7, "fingerprint": "f"}, "id must be a non-empty str"),
        (RegisteredTool, {"id": "t", "fingerprint": 7}, "fingerprint must be a str"),
        (RegisteredTool, {"id": "t", "fingerprint": "f", "enabled": "CANARY"}, "enabled must be True or False"),
        (ToolRegistry, {"id": "", "fingerprint": "f"}, "id must be a non-empty str"),
        (
            DropReason,
            {"value": "CANARY"},
            "not a valid DropReason; it is one of `failed`, `cancelled`, `blocked`, `abandoned`",
        ),
    ],
)
def test_what_does_not_fit_is_said_without_values(make, overrides, expected):
    """The error says which value is required, and shows no value of the record."""
    with pytest.raises((TypeError, ValueError)) as caught:
        make(**overrides)

    assert expected == str(caught.value)


@pytest.mark.shows("002-031")
def test_trust_can_be_given_by_name():
    """A host may write the trust level as text."""
    assert Trust.INNER is make_turn(trust="inner").trust


@pytest.mark.parametrize(
    ("trust", "reached"),
    [
        ("full", ["full", "inner", "familiar", "public"]),
        ("inner", ["inner", "familiar", "public"]),
        ("familiar", ["familiar", "public"]),
        ("public", ["public"]),
    ],
)
def test_trust_reaches_itself_and_what_is_less(trust, reached):
    """Full trust is the most, public the least."""
    assert reached == [needed.value for needed in Trust if Trust(trust).reaches(needed)]


@pytest.mark.parametrize("kind", RECORDS, ids=lambda kind: kind.__name__)
def test_records_are_frozen_slotted_and_keyword_only(kind):
    """Records are keyword-only, frozen and without `__dict__`."""
    assert all(field.kw_only for field in attrs.fields(kind))
    assert "__dict__" not in dir(kind)
    assert kind.__setattr__ is not object.__setattr__


@pytest.mark.parametrize("record", [make_turn(), make_answer(), make_tool_result()])
def test_no_field_can_be_changed(record):
    """Setting, deleting and adding attributes raise on every field."""
    for name in (*(field.name for field in attrs.fields(type(record))), "unheard_of"):
        with pytest.raises((attrs.exceptions.FrozenInstanceError, AttributeError)):
            setattr(record, name, None)
        with pytest.raises((attrs.exceptions.FrozenInstanceError, AttributeError)):
            delattr(record, name)


def test_lists_become_tuples():
    """A host's lists become tuples, which later changes of the lists do not reach."""
    message = Message(role="user", text="earlier")
    history, views, tags = [message], ["board"], ["risky"]
    tool = RegisteredTool(id="t", fingerprint="f", tags=tags)
    tools, refs = [tool], [HostRef(kind="ticket", id="1", views=views)]
    turn = make_turn(history=history, refs=refs, registry=ToolRegistry(id="r", fingerprint="f", tools=tools))
    for given in (history, views, tags, tools, refs):
        given.clear()

    assert ((message,), ("board",), ("risky",)) == (
        turn.history,
        turn.refs[0].views,
        turn.registry.tools[0].tags,
    )


def test_arguments_and_output_are_read_only_copies():
    """Arguments and output are read-only copies, which later changes of the original do not reach."""
    given = {"paths": ["a"], "options": {"deep": [1]}}
    result = make_tool_result(arguments=given, output=given)
    given["options"]["deep"].append(2)
    given["paths"] = None

    expected = {"paths": ["a"], "options": {"deep": [1]}}
    assert (expected, expected) == (thaw(result.arguments), thaw(result.output))
    with pytest.raises(TypeError):
        result.arguments["new"] = 1
    with pytest.raises(AttributeError):
        result.arguments["paths"].append("b")


def test_default_arguments_are_not_shared_state():
    """The empty default cannot be filled."""
    with pytest.raises(TypeError):
        ToolResult(call_id="c", tool="t").arguments["a"] = 1


def test_turns_are_equal_by_what_they_say():
    """Two turns with the same fields are equal, whatever `was_injected` does."""
    plain = make_turn()

    assert plain == make_turn(was_injected=lambda text: True)
    assert hash(plain) == hash(make_turn(was_injected=lambda text: True))
    assert plain != make_turn(prompt="Something else")


def test_the_host_answers_was_injected():
    """`was_injected` calls the function that the host gave."""
    turn = make_turn(was_injected="recalled".__eq__)

    assert [True, False] == [turn.was_injected("recalled"), turn.was_injected("new")]


def test_content_stays_out_of_the_repr():
    """History, arguments and output do not show in a log line by accident."""
    shown = "".join(
        map(
            repr,
            [
                make_turn(history=[Message(role="user", text="XYZZY")]),
                Answer(text="ok", when=WHEN, messages=[Message(role="user", text="XYZZY")]),
                make_tool_result(arguments={"a": "XYZZY"}, output="XYZZY", error="XYZZY", summary="XYZZY"),
            ],
        )
    )

    assert "XYZZY" not in shown
