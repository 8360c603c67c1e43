"""What the package offers, and what importing it costs."""

import json
import subprocess
import sys
from types import ModuleType

import pytest

import beaver_hostspecs
from beaver_hostspecs import testing

PACKAGES = pytest.mark.parametrize("package", [beaver_hostspecs, testing], ids=lambda package: package.__name__)


def as_ruff_sorts(names):
    """Return CONSTANTS, then Classes, then functions, each in alphabetical order."""
    return sorted(names, key=lambda name: (not name.isupper(), not name[0].isupper(), name))


def imported_by(statement):
    """Return the modules that a fresh interpreter holds after `statement`."""
    code = f"import json, sys\n{statement}\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


@PACKAGES
def test_all_is_sorted(package):
    """`__all__` is in the order that ruff wants, without doubles."""
    assert as_ruff_sorts(set(package.__all__)) == package.__all__


@PACKAGES
def test_all_is_what_is_public(package):
    """Every public name is listed, and every listed name is there."""
    public = {name for name, value in vars(package).items() if name[0] != "_" and not isinstance(value, ModuleType)}

    assert public == set(package.__all__)


@PACKAGES
def test_a_star_import_works(package):
    """`from package import *` gives the listed names."""
    names = {}
    exec(f"from {package.__name__} import *", names)  # noqa: S102

    assert set(package.__all__) == names.keys() - {"__builtins__"}


@pytest.mark.shows("003-033")
def test_importing_the_contract_imports_nobody_else():
    """Neither the host nor a plugin, neither a heavy library nor the testing kit comes along."""
    unwanted = {
        "beaver_hooks", "beaver_hostspecs.testing", "beaver_tally", "cattrs", "click", "httpx", "hypothesis",
        "pytest", "rich", "structlog",
    }  # fmt: skip

    assert set() == unwanted & imported_by("import beaver_hostspecs")


def test_the_testing_kit_needs_no_test_framework():
    """The kit works without pytest and hypothesis, and without the host."""
    unwanted = {"beaver_hooks", "cattrs", "hypothesis", "pytest", "structlog", "unittest"}

    assert set() == unwanted & imported_by("import beaver_hostspecs.testing")


def test_importing_starts_nothing():
    """No thread runs and no log handler is installed because the contract was imported."""
    code = (
        "import beaver_hostspecs.testing, logging, threading\n"
        "print(threading.active_count(), logging.getLogger().handlers)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "1 []\n" == done.stdout
