"""The table of operations: what each one takes and returns, who may call it, and what it needs.

A new operation is a row here, its records, and the function that carries it out.
"""

from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from keyword import iskeyword
from typing import Any, Generic, TypeVar

import attrs

from beaver_memory.runtime import capture_records, reports, requests
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
        command: the name of the command that a command line makes of it; empty if it has none, or one written by hand.
        run: carries it out, blocking.
    """

    name: str
    request: type[Q]
    report: type[R]
    callers: frozenset[Caller] = EVERYONE
    private: bool = False
    services: frozenset[str] = frozenset()
    writes: bool = False
    command: str = ""
    run: Callable[[Operations, Q], R]

    @property
    def method(self) -> str:
        """The name of its method of `MemoryRuntime`."""
        return f"{self.name}_" if iskeyword(self.name) else self.name


class OperationTable(Mapping[str, Operation[Any, Any]]):
    """The operations by their names, in the order of their rows.

    Args:
        rows: the operations.
    """

    def __init__(self, *rows: Operation[Any, Any]) -> None:
        self._rows = {each.name: each for each in rows}

    def __getitem__(self, name: str) -> Operation[Any, Any]:
        return self._rows[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def commands(self) -> tuple[Operation[Any, Any], ...]:
        """The operations that a command line makes commands of."""
        return tuple(each for each in self._rows.values() if each.command)


WRITE = Operation(
    name="write", request=requests.WriteRequest, report=reports.WriteReport, run=Operations.write, writes=True
)
RECALL = Operation(name="recall", request=requests.RecallRequest, report=reports.RecallReport, run=Operations.recall)
PROJECT = Operation(
    name="project",
    request=requests.ProjectionRequest,
    report=reports.ProjectionReport,
    command="project",
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
    name="timeline",
    request=requests.TimelineRequest,
    report=reports.MemoriesReport,
    command="timeline",
    run=Operations.timeline,
)
HISTORY = Operation(
    name="history",
    request=requests.HistoryRequest,
    report=reports.HistoryReport,
    command="history",
    run=Operations.history,
)
PEOPLE = Operation(
    name="people", request=requests.PeopleRequest, report=reports.PeopleReport, command="people", run=Operations.people
)
SESSIONS = Operation(
    name="sessions",
    request=requests.SessionsRequest,
    report=reports.SessionsReport,
    command="sessions",
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
EXPORT = Operation(
    name="export", request=requests.ExportRequest, report=reports.ExportReport, run=Operations.export, callers=OWNER
)
DAMAGED = Operation(
    name="damaged",
    request=requests.DamagedRequest,
    report=reports.DamagedReport,
    run=Operations.damaged,
    callers=OWNER,
    private=True,
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

CAPTURE = Operation(
    name="capture",
    request=capture_records.CaptureRequest,
    report=capture_records.CaptureReport,
    run=Operations.capture,
    callers=OWNER_AND_HOST,
    writes=True,
)
CORRECT = Operation(
    name="correct",
    request=capture_records.CorrectRequest,
    report=capture_records.CorrectReport,
    run=Operations.correct,
    writes=True,
)
UNDO = Operation(
    name="undo",
    request=capture_records.UndoRequest,
    report=capture_records.UndoReport,
    run=Operations.undo,
    callers=OWNER,
    writes=True,
)
PENDING = Operation(
    name="pending",
    request=capture_records.PendingRequest,
    report=capture_records.PendingReport,
    run=Operations.pending,
    callers=OWNER_AND_HOST,
)
REVIEW = Operation(
    name="review",
    request=capture_records.ReviewRequest,
    report=capture_records.ReviewReport,
    run=Operations.review,
    callers=OWNER,
    writes=True,
)

OPERATIONS = OperationTable(
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
    EXPORT,
    DAMAGED,
    IMPORT,
    EMBED,
    RECOVER,
    CAPTURE,
    CORRECT,
    UNDO,
    PENDING,
    REVIEW,
)
"""The operations by their names. `capabilities` and `close` belong to the runtime itself."""
