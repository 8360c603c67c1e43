"""The package `beaver_hooks`: its names are there, and imported when they are asked for."""

import subprocess
import sys
from importlib import import_module
from importlib.metadata import version

import pytest

import beaver_hooks

NAMES = sorted({*beaver_hooks.__all__} - {"__version__"})


def test_the_version_is_that_of_the_distribution():
    """`__version__` is what the installed distribution says."""
    assert version("beaver-hooks") == beaver_hooks.__version__


@pytest.mark.parametrize("name", NAMES)
def test_each_name_is_that_of_its_module(name):
    """Each name of the package is what its module has under that name."""
    home = import_module(beaver_hooks._MODULES[name])

    assert getattr(home, name) is getattr(beaver_hooks, name)


def test_all_names_are_listed():
    """`dir` lists every public name, whether it was asked for or not."""
    assert set() == {*beaver_hooks.__all__} - {*dir(beaver_hooks)}
    assert NAMES == sorted(beaver_hooks._MODULES)


def test_an_unknown_name_is_refused():
    """A misspelt name is an AttributeError that names the package and the name."""
    with pytest.raises(AttributeError) as error:
        beaver_hooks.Hots  # noqa: B018 - asking is the test

    assert "module 'beaver_hooks' has no attribute 'Hots'" == str(error.value)


def test_importing_the_package_imports_nothing_else():
    """`import beaver_hooks` loads no module of its own and no dependency."""
    code = (
        "import sys; before = set(sys.modules); import beaver_hooks; new = set(sys.modules) - before;"
        "print(sorted(name for name in new if name.startswith(('beaver', 'attr', 'pluggy', 'structlog', 'apsw'))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "['beaver_hooks']" == done.stdout.strip()
