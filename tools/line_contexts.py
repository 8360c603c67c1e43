"""A pytest plugin for `tools/mutants.py`: records the lines that each test executes, its seconds and its outcome.

coverage.py measures every process that inherits COVERAGE_PROCESS_START. Here each test gets a context of its own; a
process that a test starts gets its context from PYTEST_CURRENT_TEST, through the configuration file.
"""

import json
import os
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import coverage
import pytest

seconds: dict[str, float] = defaultdict(float)
failed: set[str] = set()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Name the lines that follow after the test."""
    if measured := coverage.Coverage.current():
        measured.switch_context(item.nodeid)
    return (yield)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add up the seconds of a test's phases."""
    seconds[report.nodeid] += report.duration
    if report.failed:
        failed.add(report.nodeid)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Save the lines in a worker, and the seconds in the process that collects the reports."""
    if measured := coverage.Coverage.current():
        measured.stop()
        measured.save()
    if not hasattr(session.config, "workerinput"):
        found = {"seconds": seconds, "failed": sorted(failed)}
        Path(os.environ["BEAVER_TEST_SECONDS"]).write_text(json.dumps(found), "utf-8")
