"""The reading tools: each shows only memories that its turn may see. Blocking."""

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from beaver_hooks_local.errors import damaged_text
from beaver_hooks_local.memory import LocalMemory
from beaver_hooks_local.tools import serialise
from beaver_hooks_local.visibility import Visibility
from beaver_hostspecs import Report, Trust, Turn
from beaver_memory.filters import Filters
from beaver_memory.runtime.reports import RecallReport
from beaver_memory.runtime.requests import (
    GetRequest,
    HistoryRequest,
    PeopleRequest,
    RecallRequest,
    SessionsRequest,
    TimelineRequest,
)

Arguments = Mapping[str, Any]
Answer = dict[str, Any]

MOST_PEOPLE = 50


def search(memory: LocalMemory, arguments: Arguments, turn: Turn, report: Report) -> Answer:
    """Return rows of the memories that fit a query best, or of the newest ones."""
    sight = Visibility.of_turn(turn, memory.home)
    more = {
        name: arguments[name] for name in ("stores", "types", "people", "file", "after", "before") if name in arguments
    }
    now = memory.clock.now()
    if "as_of" in arguments:
        # What waits for approval holds in the future only, and stays hidden.
        more["as_of"] = min(arguments["as_of"], now)
    text, filters = arguments.get("query", ""), sight.filters(now, **more)
    limits = {"limit": arguments.get("limit", 10), "max_tokens": arguments.get("max_tokens")}
    found = memory.operations.recall(RecallRequest(query=text, operators=True, visible=filters, **limits))
    report.candidates((str(hit.memory.id), round(hit.score, 4)) for hit in found.hits)
    asked = bool(text.strip())
    results = [serialise.row(hit.memory, hit.score if asked else None) for hit in found.hits]
    return {"count": len(results), "results": results, **_lack(found)}


def _lack(found: RecallReport) -> Answer:
    """Return why a search found less than usual."""
    if found.without_index is not None:
        return {"note": "found by the words in the database only: no index could be built"}
    if found.keyword_only is not None:
        return {"note": "found by words only: the embedder does not work now"}
    return {}


def timeline(memory: LocalMemory, arguments: Arguments, turn: Turn, _: Report) -> Answer:
    """Return rows of the memories before and after one."""
    around = {"before": arguments.get("before", 3), "after": arguments.get("after", 3)}
    filters = Visibility.of_turn(turn, memory.home).filters(memory.clock.now())
    found = memory.operations.timeline(TimelineRequest(anchor=arguments["anchor"], visible=filters, **around))
    rows = [
        serialise.row(each) | ({"anchor": True} if each.id == arguments["anchor"] else {}) for each in found.memories
    ]
    return {"count": len(rows), "results": rows, **_none(memory, rows, arguments["anchor"], filters)}


def get(memory: LocalMemory, arguments: Arguments, turn: Turn, report: Report) -> Answer:
    """Return memories whole."""
    filters = Visibility.of_turn(turn, memory.home).filters(memory.clock.now())
    got = memory.operations.get(GetRequest(ids=arguments["ids"], visible=filters))
    found = got.memories
    memory.operations.touch((each.id for each in found), filters.view.tenant)
    observations = [serialise.whole(each) for each in found]
    cut = sum("cut" in each for each in observations)
    if cut:
        report.clipped("texts", len(observations) - cut, len(observations))
    return {"count": len(observations), "observations": observations, **_note(observations, got.damaged)}


def history(memory: LocalMemory, arguments: Arguments, turn: Turn, _: Report) -> Answer:
    """Return the history of a memory."""
    filters = attrs.evolve(Visibility.of_turn(turn, memory.home).filters(memory.clock.now()), lapsed=True)
    found = memory.operations.history(HistoryRequest(id=arguments["observation_id"], visible=filters))
    entries = [serialise.change(each) for each in found.changes]
    return {"count": len(entries), "history": entries, **_none(memory, entries, arguments["observation_id"], filters)}


def people(memory: LocalMemory, arguments: Arguments, turn: Turn, _: Report) -> Answer:
    """Return people."""
    filters = Visibility.of_turn(turn, memory.home).filters(memory.clock.now())
    request = PeopleRequest(visible=filters, query=arguments.get("query", ""), limit=MOST_PEOPLE)
    found = memory.operations.people(request).people
    return {"count": len(found), "people": [serialise.person(each) for each in found]}


def sessions(memory: LocalMemory, arguments: Arguments, turn: Turn, _: Report) -> Answer:
    """Return the last sessions, to the owner alone."""
    sight = Visibility.of_turn(turn, memory.home)
    request = SessionsRequest(owner=sight.owner, limit=arguments.get("limit", 10))
    found = memory.operations.sessions(request).sessions if sight.trust is Trust.FULL else ()
    return {"count": len(found), "sessions": [serialise.session(each) for each in found]}


def _none(memory: LocalMemory, rows: list[Any], id_: int, filters: Filters) -> Answer:
    """Return a note if a memory gave no rows."""
    return {} if rows else _note(rows, memory.operations.get(GetRequest(ids=[id_], visible=filters)).damaged)


def _note(rows: list[Any], damaged: Sequence[int]) -> Answer:
    if damaged:
        return {"note": damaged_text(damaged)}
    return {} if rows else {"note": "there is no memory with this id"}
