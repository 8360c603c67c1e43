"""Filters in plain Python, slow and easy to check: every store must agree with them."""

from beaver_memory.filters import Filters
from beaver_memory.records import Memory


def may_be_seen(memory: Memory, filters: Filters) -> bool:
    """Return whether filters let a memory through."""
    return (
        memory.owner in filters.view.owners
        and memory.store in filters.view.stores
        and memory.deleted_at is None
        and _fits(memory, filters)
        and _near(memory, filters)
        and _timely(memory, filters)
    )


def _fits(memory: Memory, filters: Filters) -> bool:
    people = {name.casefold() for name in memory.related_people}
    return (
        (not filters.types or memory.type in filters.types)
        and (not filters.scopes or memory.scope in filters.scopes)
        and (not filters.sources or memory.source in filters.sources)
        and {*filters.tags} <= {*memory.tags}
        and (not filters.people or bool(people & {name.casefold() for name in filters.people}))
        and (not filters.file or any(_below(path, filters.file) for path in memory.related_files))
    )


def _below(path: str, file: str) -> bool:
    path, file = path.rstrip("/") or "/", file.rstrip("/")
    return path == (file or "/") or path.startswith(f"{file}/")


def _near(memory: Memory, filters: Filters) -> bool:
    return (
        (filters.view.place in {None, memory.project} or memory.scope == "global")
        and (not filters.view.session or memory.scope != "session" or memory.session == filters.view.session)
        and (not filters.view.agent or memory.agent in {"", filters.view.agent})
    )


def _timely(memory: Memory, filters: Filters) -> bool:
    then, said = filters.as_of or filters.view.now, memory.created_at
    if said is None:
        return False
    holds = (
        (memory.expires_at is None or memory.expires_at > filters.view.now)
        and (memory.valid_from is None or memory.valid_from <= then)
        and (memory.valid_until is None or memory.valid_until > then)
    )
    return (
        (holds or filters.lapsed)
        and (filters.as_of is None or said <= filters.as_of)
        and (filters.after is None or said >= filters.after)
        and (filters.before is None or said < filters.before)
    )
