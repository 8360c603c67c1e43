"""Reads people, and reads and writes summaries of sessions."""

from typing import Any

from beaver_memory.records import Person, SessionSummary
from beaver_memory.store.bounds import bounded
from beaver_memory.store.labels import PERSON, folded
from beaver_memory.store.people import ranked
from beaver_memory.store.postgres.owners import OwnerKey
from beaver_memory.store.postgres.queries import postgres_queries
from beaver_memory.store.postgres.seen import Seen
from beaver_memory.texts import cleaned, micros, moment, packed, unpacked

_SQL = postgres_queries("people")
_LISTS = ("decisions", "open_items")


def people(connection: Any, seen: Seen, query: str, limit: int) -> list[Person]:
    """Return people that visible memories are related to, most mentioned first."""
    if not seen.owners:
        return []
    wanted, found = folded(query), []
    rows = connection.execute(_SQL["people"].format(conditions=seen.which.sql), seen.params(prefix=PERSON))
    for label, names, count, last in rows:
        key = label.removeprefix(PERSON)
        if wanted in key:
            # The name as the first of these memories spells it.
            name = next((each for each in unpacked(names) if folded(each) == key), key)
            found.append(Person(name=name, mention_count=count, last_mentioned=moment(last)))
    return ranked(found, limit)


def summaries(connection: Any, key: OwnerKey, limit: int) -> list[SessionSummary]:
    """Return the newest summaries of an owner's sessions."""
    given = {"tenant": key.tenant, "owner": key.owner, "limit": bounded(limit)}
    return [
        SessionSummary(
            agent=agent,
            session=session,
            request=request,
            outcome=outcome,
            decisions=unpacked(decisions),
            open_items=unpacked(open_items),
            observation_count=count,
            created_at=moment(created),
        )
        for agent, session, request, outcome, decisions, open_items, count, created in connection.execute(
            _SQL["summaries"], given
        )
    ]


def summarise(connection: Any, key: OwnerKey, summary: SessionSummary) -> None:
    """Store the summary of an agent's session in place of an earlier one."""
    texts = {name: cleaned(getattr(summary, name)) for name in ("agent", "session", "request", "outcome")}
    lists = {name: packed(getattr(summary, name)) for name in _LISTS}
    numbers = {"count": summary.observation_count, "created_at": micros(summary.created_at)}
    connection.execute(_SQL["set_summary"], {"tenant": key.tenant, "owner": key.owner} | texts | lists | numbers)
