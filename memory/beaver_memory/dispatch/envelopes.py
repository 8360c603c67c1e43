"""The envelopes of a request and of its response, the same for every transport, and the problems of a request.

A problem names a wrong field by its path, and never its value.
"""

import heapq
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import attrs
import cattrs
from attrs import field
from attrs.validators import and_, instance_of, max_len, optional
from cattrs.errors import ForbiddenExtraKeysError

from beaver_hostspecs import scrub
from beaver_hostspecs.neutralising import neutralise
from beaver_memory.filters import Filters
from beaver_memory.records import Owner, Store
from beaver_memory.runtime.table import Caller

LONGEST_KEY = 200

_key: Any = and_(instance_of(str), max_len(LONGEST_KEY))

Status = Literal["done", "refused", "invalid", "failed"]
"""How an operation ended: `refused` by its rules, `invalid` before it began, `failed` by a fault."""

MOST_PROBLEMS = 20
"""Problems that one response names."""

LONGEST_NAME = 40
"""Characters of an unknown field's name that a problem shows."""

_AT = " @ "
"""What stands between a problem and its place in the texts of cattrs."""

MOST_VALUES = 1_000_000
"""Values in a request, counted at all levels."""

MOST_LEVELS = 20
"""Levels of lists and objects in a request, itself included."""

MOST_NAMES = 1_000
"""Fields of one object."""


@attrs.frozen(kw_only=True)
class Source:
    """Where a request comes from. A transport builds it from the identity that it has verified.

    Attributes:
        caller: who calls.
        visible: the memories that the caller may see; a request only narrows it.
        own: the memories that the caller may change.
        owner: the owner of the memories that the caller writes.
        store: their visibility, unless the request names another one that the caller may change.
        every_owner: whether the caller may name other owners, as the owner of the store may.
        name: of the transport, for the trace.
    """

    caller: Caller
    visible: Filters
    own: Filters
    owner: Owner = field(factory=Owner)
    store: Store = Store.PRIVATE
    every_owner: bool = False
    name: str = "sdk"


@attrs.frozen(kw_only=True)
class RequestEnvelope:
    """A request by name.

    Attributes:
        operation: the name of the operation.
        request: the fields of its request.
        source: where it comes from.
        profile: the profile that the caller expects, or `None` for any.
        idempotency_key: a key of the caller's; a second request with it is answered with the first response.
    """

    operation: str = field(validator=instance_of(str))
    request: Mapping[str, Any] = field(factory=dict, repr=False)
    source: Source
    profile: str | None = None
    idempotency_key: str | None = field(default=None, validator=optional(_key))


@attrs.frozen(kw_only=True)
class Problem:
    """One thing that is wrong with a request. It never repeats a value.

    Attributes:
        code: the kind of problem, in one word for programs.
        sentence: the problem and the remedy.
        field: the path of the field, for example `memories[0].title`; empty for the request as a whole.
    """

    code: str
    sentence: str
    field: str = ""


@attrs.frozen(kw_only=True)
class ResponseEnvelope:
    """A response.

    Attributes:
        operation: the name of the operation.
        status: how it ended.
        report: the fields of its report; empty unless it is done or refused.
        problems: why it is refused, invalid or failed.
        profile: the profile of the memory.
        idempotency_key: of the request.
        replayed: whether this is the response to an earlier request with the same key.
    """

    operation: str
    status: Status
    report: Mapping[str, Any] = field(factory=dict, repr=False)
    problems: tuple[Problem, ...] = ()
    profile: str
    idempotency_key: str | None = None
    replayed: bool = False


class InvalidFields(Exception):
    """A request cannot be decoded.

    Attributes:
        problems: the wrong fields.
    """

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        self.problems = problems
        super().__init__(f"{len(problems)} fields are wrong")


class Unfit(TypeError):
    """A value of the wrong type. The error names the right type, and does not hold the value."""


def problems_of(error: Exception, path: str) -> list[Problem]:
    """Return the problems in an error of the converter."""
    found = []
    for line in cattrs.transform_error(error, path=path, format_exception=_sentence):
        sentence, _, place = line.rpartition(_AT)
        found.append(Problem(code="invalid", field=place.lstrip("."), sentence=sentence))
    return found


def _sentence(error: BaseException, _: object) -> str:
    match error:
        case Unfit():
            return f"It {error}."
        case ForbiddenExtraKeysError():
            names = (
                scrub(neutralise(name))[:LONGEST_NAME] for name in heapq.nsmallest(MOST_PROBLEMS, error.extra_fields)
            )
            return f"Unknown fields: {', '.join(names)}."
        case KeyError():
            return "It is missing."
        case ValueError(args=(_, attrs.Attribute(name=name), *_)):
            return f"`{name}` is out of range."
        case ValueError():
            # attrs puts the value behind a colon.
            return f"It does not fit: {str(error).partition(': ')[0]}."
    return "It does not fit."


def problem_of_size(body: object) -> Problem | None:
    """Return why a request is too large to be decoded, or `None`."""
    if not isinstance(body, Mapping):
        return Problem(code="invalid", sentence="The request must be an object.")
    count = 0
    level: list[Any] = [body]
    for _ in range(MOST_LEVELS):
        count += sum(map(len, level))
        if count > MOST_VALUES:
            return _too_large(f"The request holds more than {MOST_VALUES:,} values.")
        if any(isinstance(each, Mapping) and len(each) > MOST_NAMES for each in level):
            return _too_large(f"An object in the request has more than {MOST_NAMES:,} fields.")
        if any(isinstance(each, Mapping) and not all(isinstance(name, str) for name in each) for each in level):
            return Problem(code="invalid", sentence="The names of fields must be texts.")
        level = [inner for each in level for inner in _values(each) if isinstance(inner, (Mapping, list))]
        if not level:
            return None
    return _too_large(f"The request has more than {MOST_LEVELS} levels.")


def _values(container: Any) -> Iterable[object]:
    values: Iterable[object] = container.values() if isinstance(container, Mapping) else container
    return values


def _too_large(sentence: str) -> Problem:
    return Problem(code="too_large", sentence=sentence)
