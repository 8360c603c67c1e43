"""The table of operations: what each one takes and returns, who may call it, and what it needs.

A new operation is a row here, its records, and the function that carries it out.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Generic, TypeVar

import attrs

from beaver_memory.runtime import reports, requests
from beaver_memory.runtime.operations import Operations

Q = TypeVar("Q")
R = TypeVar("R")


class Caller(StrEnum):
    """Who calls an operation: the owner of the memory at a command line, a host in a hook, or a model by a tool."""

    OWNER = "owner"
    HOST = "host"
    MODEL = "model"


EVERYONE = frozenset(Caller)
OWNER_AND_HOST = frozenset({Caller.OWNER, Caller.HOST})
OWNER = frozenset({Caller.OWNER})


@attrs.frozen(kw_only=True)
class Operation(Generic[Q, R]):
    """One operation.

    Attributes:
        name: its name.
        request: the type of its request.
        report: the type of its report.
        callers: who may call it.
        private: whether it shows facts that are the owner's alone, so that the caller must see the private store.
        services: the names of the services that it needs.
        writes: whether it may write; upkeep then has work, and a repeated request is answered from its response.
        run: carries it out, blocking.
    """

    name: str
    request: type[Q]
    report: type[R]
    callers: frozenset[Caller] = EVERYONE
    private: bool = False
    services: frozenset[str] = frozenset()
    writes: bool = False
    run: Callable[[Operations, Q], R]


WRITE = Operation(
    name="write", request=requests.WriteRequest, report=reports.WriteReport, run=Operations.write, writes=True
)
RECALL = Operation(name="recall", request=requests.RecallRequest, report=reports.RecallReport, run=Operations.recall)
PROJECT = Operation(
    name="project",
    request=requests.ProjectionRequest,
    report=reports.ProjectionReport,
    run=Operations.project,
    callers=OWNER_AND_HOST,
    writes=True,
)
GET = Operation(name="get", request=requests.GetRequest, report=reports.MemoriesReport, run=Operations.get)
LIST = Operation(
    name="list",
    request=requests.ListRequest,
    report=reports.MemoriesReport,
    run=Operations.list,
    callers=OWNER_AND_HOST,
)
TIMELINE = Operation(
    name="timeline", request=requests.TimelineRequest, report=reports.MemoriesReport, run=Operations.timeline
)
HISTORY = Operation(
    name="history", request=requests.HistoryRequest, report=reports.HistoryReport, run=Operations.history
)
PEOPLE = Operation(name="people", request=requests.PeopleRequest, report=reports.PeopleReport, run=Operations.people)
SESSIONS = Operation(
    name="sessions",
    request=requests.SessionsRequest,
    report=reports.SessionsReport,
    run=Operations.sessions,
    private=True,
)
INSPECT = Operation(
    name="inspect",
    request=requests.InspectionRequest,
    report=reports.InspectionReport,
    run=Operations.inspect,
    private=True,
    callers=OWNER_AND_HOST,
)
PIN = Operation(
    name="pin", request=requests.PinRequest, report=reports.PinReport, run=Operations.pin, callers=OWNER, writes=True
)
FORGET = Operation(
    name="forget",
    request=requests.ForgetRequest,
    report=reports.ForgetReport,
    run=Operations.forget,
    callers=OWNER,
    writes=True,
)
MOVE = Operation(
    name="move",
    request=requests.MoveRequest,
    report=reports.MoveReport,
    run=Operations.move,
    callers=OWNER,
    writes=True,
)
EXPORT = Operation(
    name="export", request=requests.ExportRequest, report=reports.ExportReport, run=Operations.export, callers=OWNER
)
IMPORT = Operation(
    name="import",
    request=requests.ImportRequest,
    report=reports.WriteReport,
    run=Operations.import_,
    callers=OWNER,
    writes=True,
)
EMBED = Operation(
    name="embed",
    request=requests.EmbedRequest,
    report=reports.EmbedReport,
    run=Operations.embed,
    callers=OWNER_AND_HOST,
    services=frozenset({"embedder"}),
)
RECOVER = Operation(
    name="recover",
    request=requests.RecoverRequest,
    report=reports.RecoverReport,
    run=Operations.recover,
    callers=OWNER_AND_HOST,
)

_ROWS: tuple[Operation[Any, Any], ...] = (
    WRITE,
    RECALL,
    PROJECT,
    GET,
    LIST,
    TIMELINE,
    HISTORY,
    PEOPLE,
    SESSIONS,
    INSPECT,
    PIN,
    FORGET,
    MOVE,
    EXPORT,
    IMPORT,
    EMBED,
    RECOVER,
)

OPERATIONS: Mapping[str, Operation[Any, Any]] = MappingProxyType({each.name: each for each in _ROWS})
"""The operations by their names. `capabilities` and `close` belong to the runtime itself."""
