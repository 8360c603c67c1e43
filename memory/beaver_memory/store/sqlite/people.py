"""Reads people, and reads and writes summaries of sessions."""

import apsw

from beaver_memory.filters import Filters
from beaver_memory.records import Person, SessionSummary
from beaver_memory.store.bounds import bounded
from beaver_memory.store.labels import PERSON, folded
from beaver_memory.store.people import ranked
from beaver_memory.store.sqlite.owners import OwnerKey, TenantOwners
from beaver_memory.store.sqlite.queries import sqlite_queries
from beaver_memory.store.sqlite.sql_filters import conditions
from beaver_memory.texts import cleaned, micros, moment, packed, unpacked

_SQL = sqlite_queries("people")
_UNTIL = PERSON[:-1] + chr(ord(PERSON[-1]) + 1)


def people(connection: apsw.Connection, owners: TenantOwners, filters: Filters, query: str, limit: int) -> list[Person]:
    """Return people that visible memories are related to, most mentioned first."""
    which, wanted = conditions(filters), folded(query)
    sql = _SQL["people"].format(conditions=which.sql)
    found: list[Person] = []
    for owner in owners:
        for key, name, aliases, count, last in connection.execute(sql, (*owner, PERSON, _UNTIL, *which.params)):
            person = Person(name=name, aliases=unpacked(aliases), mention_count=count, last_mentioned=moment(last))
            if wanted in key or any(wanted in folded(alias) for alias in person.aliases):
                found.append(person)
    return ranked(found, limit)


def summaries(connection: apsw.Connection, owner: OwnerKey, limit: int) -> list[SessionSummary]:
    """Return the newest summaries of an owner's sessions."""
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
            _SQL["summaries"], (*owner, bounded(limit))
        )
    ]


def summarise(connection: apsw.Connection, owner: OwnerKey, summary: SessionSummary) -> None:
    """Store the summary of an agent's session in place of an earlier one."""
    connection.execute(
        _SQL["set_summary"],
        (
            *owner,
            cleaned(summary.agent),
            cleaned(summary.session),
            cleaned(summary.request),
            cleaned(summary.outcome),
            packed(summary.decisions),
            packed(summary.open_items),
            summary.observation_count,
            micros(summary.created_at),
        ),
    )
