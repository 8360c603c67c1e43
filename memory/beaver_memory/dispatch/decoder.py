"""Decodes the fields of a request. Strict: nothing is guessed, and every wrong field is named, never its value."""

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Literal, TypeVar, get_args, get_origin

import attrs
import cattrs
from cattrs.errors import ForbiddenExtraKeysError
from cattrs.gen import make_dict_structure_fn

from beaver_hostspecs import scrub
from beaver_hostspecs.neutralising import neutralise
from beaver_memory.dispatch.envelopes import Problem, Source
from beaver_memory.filters import Filters
from beaver_memory.records import Owner, Scope, Store
from beaver_memory.runtime.table import Operation

T = TypeVar("T")
Hook = Callable[[Any, Any], Any]

MOST_PROBLEMS = 20
"""Problems that one response names."""

OF_ALL_OWNERS = frozenset({"every_owner", "figures", "embeddings", "check", "reindex"})
"""Fields that ask for facts about the memories of all owners."""

NOT_YOURS = "This caller may not name it; leave it out."

LONGEST_NAME = 40
"""Characters of an unknown field's name that a problem shows."""

_FILLED_IN = (Filters, Owner)
"""Records that `decode` puts into a request itself; no transport may."""

_AT = " @ "
"""What stands between a problem and its place in the texts of cattrs."""


class InvalidFields(Exception):
    """A request cannot be decoded.

    Attributes:
        problems: the wrong fields.
    """

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        self.problems = problems
        super().__init__(f"{len(problems)} fields are wrong")


@attrs.frozen(kw_only=True)
class Narrowing:
    """The fields of `visible` and of `own` in a request: they narrow what the source may see, and never widen it."""

    stores: tuple[Store, ...] = tuple(Store)
    types: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    people: tuple[str, ...] = ()
    file: str = ""
    scopes: tuple[Scope, ...] = ()
    project: str = ""
    session: str = ""
    agent: str = ""
    sources: tuple[str, ...] = ()
    after: datetime | None = None
    before: datetime | None = None
    as_of: datetime | None = None
    lapsed: bool = False

    def applied(self, base: Filters) -> Filters:
        """Return filters for the memories that both `base` and this narrowing show."""
        given: dict[str, Any] = {
            "stores": tuple({*base.stores} & {*self.stores}),
            "tags": tuple({*base.tags, *self.tags}),
            "file": self.file or base.file,
            "after": max((each for each in (base.after, self.after) if each is not None), default=None),
            "before": min((each for each in (base.before, self.before) if each is not None), default=None),
            "lapsed": base.lapsed and self.lapsed,
        }
        given |= {name: _both(getattr(base, name), getattr(self, name)) for name in _ANY_OF}
        given |= {name: getattr(base, name) or getattr(self, name) for name in _ONE}
        apart = any(getattr(base, name) and not given[name] for name in _ANY_OF) or not _within(self.file, base.file)
        return attrs.evolve(base, **given, owners=() if apart else base.owners)


_ANY_OF = ("types", "people", "scopes", "sources")
"""Conditions that a memory fits by one of their values; an empty tuple is no condition."""

_ONE = ("project", "session", "agent", "as_of")
"""Conditions with one value; that of the source holds."""


def _both(base: tuple[str, ...], given: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(each for each in given if each in base) if base and given else base or given


def _within(file: str, folder: str) -> bool:
    return not (file and folder) or file == folder or file.startswith(f"{folder.rstrip('/')}/")


def decode(operation: Operation[T, Any], fields: Mapping[str, Any], source: Source) -> T:
    """Return the request that the fields describe, for its source.

    Raises:
        InvalidFields: a field is unknown, missing or of the wrong type, or names what the source may not name.
    """
    body = dict(fields)
    problems = [*_narrow(body, operation, source), *_fill(body, operation, source)]
    try:
        request = _CONVERTER.structure(body, operation.request)
    except Exception as error:  # noqa: BLE001 - each cause becomes a problem
        problems += _problems(error, "")
    if problems:
        raise InvalidFields(tuple(problems[:MOST_PROBLEMS]))
    return request


def structure(kind: type[T], fields: Mapping[str, Any]) -> T:
    """Return a record that depends on no source.

    Raises:
        InvalidFields: a field is unknown, missing or of the wrong type.
    """
    try:
        return _CONVERTER.structure(fields, kind)
    except Exception as error:
        raise InvalidFields(tuple(_problems(error, ""))) from error


def _narrow(body: dict[str, Any], operation: Operation[Any, Any], source: Source) -> Iterator[Problem]:
    """Put filters in place of the narrowing that the request gives; yield its problems."""
    for name, base in (("visible", source.visible), ("own", source.own)):
        if name in attrs.fields_dict(operation.request):
            try:
                body[name] = _CONVERTER.structure(body.get(name, {}), Narrowing).applied(base)
            except Exception as error:  # noqa: BLE001 - each cause becomes a problem
                body[name] = base
                yield from _problems(error, name)


def _fill(body: dict[str, Any], operation: Operation[Any, Any], source: Source) -> Iterator[Problem]:
    """Put the values of the source where the request names none; yield the fields that this source may not name."""
    known = attrs.fields_dict(operation.request)
    given = {"owner": source.owner, "owners": list(source.visible.owners)}
    places = [(body, "", {name: value for name, value in given.items() if name in known})]
    for name in () if source.every_owner else OF_ALL_OWNERS & known.keys():
        if body.get(name):
            yield Problem(code="not_yours", field=name, sentence=NOT_YOURS)
        body[name] = False
    if isinstance(memories := body.get("memories"), list):
        body["memories"] = memories = [dict(each) if isinstance(each, dict) else each for each in memories]
        of_memory = {"owner": source.owner, "store": source.store}
        places += [(each, f"memories[{at}].", of_memory) for at, each in enumerate(memories) if isinstance(each, dict)]
    for fields, path, values in places:
        for name, value in values.items():
            if name in fields and not _may_name(source, name, fields[name]):
                yield Problem(code="not_yours", field=path + name, sentence=NOT_YOURS)
            fields.setdefault(name, value)


def _may_name(source: Source, name: str, value: object) -> bool:
    return value in source.own.stores if name == "store" else source.every_owner


# --- Types ------------------------------------------------------------------------------------------------------------


class Unfit(TypeError):
    """A value of the wrong type. The error names the right type, and does not hold the value."""


def _plain(kind: type, wanted: str, *kinds: type) -> Hook:
    def hook(value: Any, _: object) -> Any:
        if not isinstance(value, kinds or kind) or (isinstance(value, bool) and kind is not bool):
            raise Unfit(wanted)
        return value

    return hook


def _moment(value: Any, _: object) -> datetime:
    try:
        found = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise Unfit("must be an ISO date and time such as 2026-11-18T09:30:00+00:00") from None
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found


def _choice(kind: Any, _: object = None) -> Hook:
    choices = {str(each): each for each in (get_args(kind) or kind)}

    def hook(value: Any, _: object) -> Any:
        if not isinstance(value, str) or value not in choices:
            raise Unfit(f"must be one of {', '.join(choices)}")
        return choices[value]

    return hook


def _tuple(kind: Any, converter: cattrs.Converter) -> Hook:
    items: Any = list.__class_getitem__(get_args(kind)[0])

    def hook(value: Any, _: object) -> Any:
        if not isinstance(value, list):
            raise Unfit("must be a list")
        return tuple(converter.structure(value, items))

    return hook


def _record(kind: Any, converter: cattrs.Converter) -> Hook:
    structure = make_dict_structure_fn(kind, converter, _cattrs_forbid_extra_keys=True)

    def hook(value: Any, _: object) -> Any:
        if kind in _FILLED_IN and isinstance(value, kind):
            return value
        if not isinstance(value, dict):
            raise Unfit("must be an object")
        return structure(value, kind)

    return hook


def _converter() -> cattrs.Converter:
    made = cattrs.Converter()
    for kind, hook in {
        str: _plain(str, "must be a text"),
        int: _plain(int, "must be a whole number"),
        float: _plain(float, "must be a number", int, float),
        bool: _plain(bool, "must be true or false"),
        datetime: _moment,
        Store: _choice(Store),
    }.items():
        made.register_structure_hook(kind, hook)
    factories: dict[Callable[[Any], bool], Any] = {
        lambda kind: get_origin(kind) is tuple: _tuple,
        lambda kind: get_origin(kind) is Literal: _choice,
        attrs.has: _record,
    }
    for fits, factory in factories.items():
        made.register_structure_hook_factory(fits, factory)
    return made


_CONVERTER = _converter()


# --- Problems ---------------------------------------------------------------------------------------------------------


def _problems(error: Exception, path: str) -> list[Problem]:
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
            names = sorted(scrub(neutralise(name))[:LONGEST_NAME] for name in error.extra_fields)
            return f"Unknown fields: {', '.join(names[:MOST_PROBLEMS])}."
        case KeyError():
            return "It is missing."
        case ValueError(args=(_, attrs.Attribute(name=name), *_)):
            return f"`{name}` is out of range."
        case ValueError():
            # attrs puts the value behind a colon.
            return f"It does not fit: {str(error).partition(': ')[0]}."
    return "It does not fit."
