"""The tests of a mutant: which execute its lines, known from one run of the quick tests, and which of them fails."""

import hashlib
import json
import re
import shlex
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from coverage import Coverage, CoverageData
from coverage.exceptions import CoverageWarning
from tree_copies import ROOT, TIMED_OUT, copy_tree, listed, run_pytest

STORED = ROOT / "build" / "mutants"
FIRST = 100
"""So many tests that execute a line run before the others that do."""

CONFIGURATION = """\
[run]
parallel = true
data_file = {folder}/lines
context = ${{PYTEST_CURRENT_TEST-}}
include = {tree}/**/beaver_*/**
omit = {tree}/.venv/**
disable_warnings = no-data-collected,module-not-imported,module-not-measured,couldnt-parse
"""


class Baseline(NamedTuple):
    """A run of the quick tests without a mutant: the tree that ran, the tests' seconds and modules, and failures."""

    fingerprint: str
    quick: str
    tree: str
    seconds: dict[str, float]
    modules: dict[str, int]
    failed: list[str]

    def tests(self, path: str, lines: Iterable[int]) -> list[str]:
        """Return the tests that execute one of the lines, or else the module: of few modules and quick first."""
        data = CoverageData(str(STORED / "lines"))
        data.read()
        contexts = data.contexts_by_lineno(str(Path(self.tree) / path))
        met = {name for line in lines for name in contexts.get(line, ())}
        names = self.passed(met) or self.passed({name for line in contexts.values() for name in line})
        return sorted(names, key=lambda name: (self.modules.get(name, 0), self.seconds[name]))

    def passed(self, contexts: set[str]) -> set[str]:
        """Return the tests of contexts that are known and did not fail."""
        return (test_names(contexts) & self.seconds.keys()) - set(self.failed)


def test_names(contexts: Iterable[str]) -> set[str]:
    """Return the tests of contexts; that of a process names the phase of its test too."""
    return {re.sub(r" \((setup|call|teardown)\)$", "", context) for context in contexts}


def modules_of_tests(data: CoverageData) -> Counter[str]:
    """Return the number of modules of which each test executes lines."""
    files = (data.contexts_by_lineno(file).values() for file in data.measured_files())
    return Counter(name for lines in files for name in test_names({name for line in lines for name in line}))


def fingerprint(quick: str) -> str:
    """Return a hash of the sources, the tests and the choice of quick tests."""
    state = hashlib.sha256(quick.encode())
    for path in listed("*.py", "*.sql", "*.toml"):
        if not path.startswith(("tools/", "docs/")):
            state.update(path.encode() + b"\0" + (ROOT / path).read_bytes())
    return state.hexdigest()


def baseline(quick: str, *, stale: bool) -> Baseline:
    """Return the stored run of the quick tests, or measure one."""
    stored = STORED / "baseline.json"
    if stored.is_file():
        found = Baseline(**json.loads(stored.read_text("utf-8")))
        if stale or found.fingerprint == fingerprint(quick):
            return found._replace(quick=quick)
    STORED.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        measured = measure(Path(folder), quick)
    stored.write_text(json.dumps(measured._asdict()), "utf-8")
    return measured


def measure(folder: Path, quick: str) -> Baseline:
    """Run the quick tests in a copy, and keep which test executes which line."""
    print("running the quick tests once, to see which executes which line ...", flush=True)
    state, tree = fingerprint(quick), copy_tree(folder / "tree")
    (folder / "coveragerc").write_text(CONFIGURATION.format(folder=folder, tree=tree), "utf-8")
    environment = {
        "COVERAGE_PROCESS_START": str(folder / "coveragerc"), "BEAVER_TEST_SECONDS": str(folder / "seconds.json"),
    }  # fmt: skip
    arguments = ["-p", "tools.line_contexts", "-n", "2", *shlex.split(quick)]
    code, output = run_pytest(tree, arguments, **environment)
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        raise SystemExit(output)
    lines = Coverage(data_file=str(STORED / "lines"), config_file=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CoverageWarning)  # a process that was killed leaves half a file
        lines.combine([str(folder)])
    lines.save()
    found = json.loads((folder / "seconds.json").read_text("utf-8"))
    return Baseline(state, quick, str(tree), modules=modules_of_tests(lines.get_data()), **found)


def killers(near: list[str], known: Baseline, tree: Path, *, whole: bool) -> Iterator[str | None]:
    """Yield what fails: of the first tests, of the other tests that execute the lines, of all others if wanted."""
    for tests in filter(None, (near[:FIRST], near[FIRST:])):
        yield killer(tree, tests, sum(known.seconds[test] for test in tests))
    if not whole:
        return
    skipped = [f"--deselect={test}" for test in (*near, *known.failed)]
    found = killer(tree, [*shlex.split(known.quick), *skipped], sum(known.seconds.values()))
    # No line of a test that is found only here is known to be executed: see it fail twice.
    yield found and (killer(tree, [found], known.seconds.get(found, 0)) if "::" in found else found)


def killer(tree: Path, arguments: list[str], seconds: float) -> str | None:
    """Run pytest up to the first failure, and return the test that fails, or why nothing could run."""
    with tempfile.NamedTemporaryFile("w", encoding="utf-8") as file:
        file.write("\n".join(arguments))
        file.flush()
        code, output = run_pytest(tree, ["-x", "--tb=no", f"@{file.name}"], limit=60 + 4 * seconds)
    if missing := re.findall(rf"^ERROR: not found: {tree}/(.+)$", output, re.MULTILINE):  # other parameters now
        left = [each for each in arguments if each not in missing]
        return killer(tree, left, seconds) if left else None
    if code in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        return None
    named = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", output, re.MULTILINE)
    return named[1] if named else {TIMED_OUT: "the time limit"}.get(code, f"exit code {code}")
