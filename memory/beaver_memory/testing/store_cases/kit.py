"""Helpers of the cases."""

import contextlib
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import attrs

from beaver_hostspecs.tokens import estimate_tokens
from beaver_memory.filters import Filters
from beaver_memory.records import Memory, NewMemory, Owner
from beaver_memory.store.fingerprint import hash_of, new_uid
from beaver_memory.store.protocol import Analysed, SingleStore
from beaver_memory.views import ALL_PROJECTS, View

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
_LONGEST = 2_000
OpenStore = Callable[[], SingleStore]
Check = Callable[[OpenStore], None]


class Disagreement(AssertionError):
    """A store does not do what every store must do."""


@attrs.frozen(kw_only=True)
class StoreCase:
    """One rule for every store.

    Attributes:
        name: its name.
        about: the rule, in a sentence.
        run: raises `Disagreement` if the store breaks the rule.
    """

    name: str
    about: str
    run: Check = attrs.field(repr=False)


def case_of(check: Check) -> StoreCase:
    """Return a function as a case."""
    return StoreCase(name=check.__name__, about=(check.__doc__ or "").strip(), run=check)


@contextlib.contextmanager
def using(open_store: OpenStore) -> Iterator[SingleStore]:
    """Open a store for a block."""
    store = open_store()
    try:
        yield store
    finally:
        store.close()


def agree(expected: object, actual: object, about: str = "") -> None:
    """Raise `Disagreement` unless both are equal."""
    if expected != actual:
        where = f"{about}: " if about else ""
        raise Disagreement(f"{where}expected {_short(expected)}, not {_short(actual)}")


def holds(condition: bool, about: str = "what must hold") -> None:  # noqa: FBT001 - as `assert` takes it
    """Raise `Disagreement` unless a condition holds."""
    if not condition:
        raise Disagreement(f"{about}: it does not hold")


def raises(kinds: type[Exception] | tuple[type[Exception], ...], call: Callable[[], object]) -> None:
    """Raise `Disagreement` unless a call raises one of these errors."""
    try:
        call()
    except kinds:
        return
    raise Disagreement(f"expected {kinds}, and nothing was raised")


def new(title: str, *, at: int | None = None, **fields: Any) -> Analysed:
    """Return a new memory, said `at` minutes after `NOW`, with a uid of its own."""
    fields.setdefault("uid", new_uid().hex())
    if at is not None:
        fields["created_at"] = NOW + timedelta(minutes=at)
    return Analysed(
        memory=NewMemory(title=title, **fields),
        terms=title.encode("utf-8", "replace"),
        length=len(title.split()),
    )


def as_stored(memory: NewMemory, id_: int) -> Memory:
    """Return the stored form of a memory that was added at `NOW`, and says when it was said."""
    return Memory(
        **attrs.asdict(memory, recurse=False),
        id=id_,
        hash=hash_of(memory.title, memory.facts),
        token_count=estimate_tokens(memory.text),
        updated_at=NOW,
    )


def looking(**fields: Any) -> Filters:
    """Return filters from fields of a view and of conditions; of all projects, an hour after `NOW`, unless given."""
    given = {"project": ALL_PROJECTS, "now": NOW + timedelta(hours=1)} | fields
    of_view: dict[str, Any] = {name: value for name, value in given.items() if name in attrs.fields_dict(View)}
    return Filters(view=View(**of_view), **{name: value for name, value in fields.items() if name not in of_view})


def titles(memories: Iterable[Memory]) -> list[str]:
    """Return the titles of memories."""
    return [memory.title for memory in memories]


def last_vector(store: SingleStore, owner: Owner, model: str) -> int:
    """Return the version of an owner's newest embedding by a model."""
    ((_, version),) = store.versions([owner], model)
    return version


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
