"""The kit for tests of plugins and of hosts. Needs no test framework. Only tests import it.

- `RecordingPlugin` answers every hook and records each call; `FaultPlugin` misbehaves in one hook.
- `RecordingReport` keeps the reports of a plugin; `FrozenClock` holds time still.
- `RecordedFiles` is a `FileTrust` for which git lists every file: it believes recorded contents.
- `make_turn`, `make_answer`, `make_tool_result` and `make_compaction` make records with harmless defaults.
- `make_canary` makes a secret that is recognised in every shape in which it leaks.
"""

from beaver_hostspecs.testing.canaries import Canary, make_canary, traces
from beaver_hostspecs.testing.factories import FrozenClock, make_answer, make_compaction, make_tool_result, make_turn
from beaver_hostspecs.testing.faults import (
    PLAIN_FAULTS,
    BareFault,
    Fault,
    FaultError,
    FaultPlugin,
    fault_cases,
)
from beaver_hostspecs.testing.hooked import COROUTINE_HOOKS, PLAIN_HOOKS, Call, HookedPlugin, Signal
from beaver_hostspecs.testing.recordings import RecordedFiles, RecordingPlugin, RecordingReport

__all__ = [
    "COROUTINE_HOOKS",
    "PLAIN_FAULTS",
    "PLAIN_HOOKS",
    "BareFault",
    "Call",
    "Canary",
    "Fault",
    "FaultError",
    "FaultPlugin",
    "FrozenClock",
    "HookedPlugin",
    "RecordedFiles",
    "RecordingPlugin",
    "RecordingReport",
    "Signal",
    "fault_cases",
    "make_answer",
    "make_canary",
    "make_compaction",
    "make_tool_result",
    "make_turn",
    "traces",
]
