"""The public names of the kit, and its cost to those who do not use it."""

import json
import subprocess
import sys
from types import ModuleType

import pytest

from beaver_hostspecs import conformance
from beaver_hostspecs.conformance import HOST_CASES, PLUGIN_CASES


def imported_by(statement):
    """Return the modules that a fresh interpreter holds after `statement`."""
    code = f"import json, sys\n{statement}\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


def test_all_is_what_is_public():
    """Every public name is listed, every listed name is there, and they are sorted: constants, classes, functions."""
    public = {name for name, value in vars(conformance).items() if name[0] != "_" and not isinstance(value, ModuleType)}
    expected = sorted(public, key=lambda name: (not name.isupper(), not name[0].isupper(), name))

    assert expected == conformance.__all__


def test_the_contract_does_not_import_the_kit():
    """Importing the contract, or its testing kit, does not import the conformance kit."""
    imported = imported_by("import beaver_hostspecs, beaver_hostspecs.testing")

    assert [] == [name for name in imported if name.startswith("beaver_hostspecs.conformance")]


def test_the_kit_needs_nobody():
    """The kit works without a test framework, a host or a plugin."""
    unwanted = {"beaver_hooks", "beaver_tally", "cattrs", "click", "httpx", "hypothesis", "pytest", "structlog"}
    imported = imported_by("import beaver_hostspecs.conformance, beaver_hostspecs.conformance.__main__")

    assert set() == unwanted & imported


@pytest.mark.parametrize("cases", [HOST_CASES, PLUGIN_CASES], ids=["hosts", "plugins"])
def test_cases_say_what_they_show(cases):
    """Each case has a name of its own, of one line, and a sentence."""
    names = [case.name for case in cases]

    assert sorted(set(names)) == sorted(names)
    assert [] == [case.name for case in cases if "|" in case.name or "\n" in case.name]
    assert [] == [case.name for case in cases if not (case.shows[0].isupper() and case.shows.endswith("."))]
