"""The wheels contain the files that they should, and packages installed from them work on their own."""

import sys
import zipfile
from email.parser import HeaderParser
from pathlib import Path

import pytest

pytestmark = pytest.mark.campaign

ROOT = Path(__file__).parents[2]
SOURCES = {
    "beaver_hostspecs": ROOT / "hostspecs",
    "beaver_toolkit": ROOT / "toolkit",
    "beaver_memory": ROOT / "memory",
    "beaver_hooks": ROOT,
    "beaver_hooks_curated": ROOT / "plugins" / "curated" / "src",
    "beaver_hooks_gateway": ROOT / "plugins" / "gateway" / "src",
    "beaver_hooks_local": ROOT / "plugins" / "local" / "src",
    "beaver_tally": ROOT / "examples" / "tally" / "src",
}
EVERY_WHEEL = pytest.mark.parametrize("package", SOURCES)
NO_PACKAGES = pytest.mark.parametrize(
    "name", ["plugins", "hostspecs", "toolkit", "memory", "tests", "docs", "examples", "benchmarks"]
)

ONE_TURN = """
import asyncio, logging, beaver_hooks
from beaver_hooks import Host

logging.disable()

async def turn(host, prompt):
    async with host.turn(prompt, session="s") as turn:
        await turn.commit("Yes.")
    await host.drain()
    return [message.plugin for message in turn.references]

async def main():
    async with Host(entry_points=["tally"], state_folder="state") as host:
        return [await turn(host, prompt) for prompt in ("one", "two")], str(host.health()["tally"]), host.trail.verify().ok

print(*asyncio.run(main()))
"""


def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def source_files(package: str) -> set[str]:
    """Return the files of a package in the repository, relative to where the package lies."""
    source = SOURCES[package]
    found = (source / package).rglob("*")
    return {str(path.relative_to(source)) for path in found if path.is_file() and "__pycache__" not in path.parts}


def metadata(wheel: Path) -> dict[str, str]:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return dict(HeaderParser().parsestr(archive.read(name).decode("utf-8")))


def test_one_wheel_per_distribution(wheels):
    """Every distribution builds into one wheel."""
    assert sorted(SOURCES) == sorted(wheels)


@EVERY_WHEEL
def test_top_level(wheels, package):
    """A wheel holds its package and its metadata, and nothing else of the repository."""
    tops = {name.partition("/")[0] for name in names(wheels[package])}

    assert {package, f"{package}-{metadata(wheels[package])['Version']}.dist-info"} == tops


@EVERY_WHEEL
def test_all_files(wheels, package):
    """A wheel holds every file of its package: modules, `py.typed` and SQL files too."""
    packaged = {name for name in names(wheels[package]) if name.startswith(f"{package}/")}

    assert source_files(package) == packaged
    assert f"{package}/py.typed" in packaged


def test_migrations_are_packaged(wheels):
    """The SQL files of the audit trail are in the wheel of the host."""
    expected = {name for name in source_files("beaver_hooks") if name.endswith(".sql")}

    assert expected
    assert expected <= names(wheels["beaver_hooks"])


@EVERY_WHEEL
def test_licence_and_readme(wheels, package):
    """A wheel carries its licence, and its README as the description."""
    said = metadata(wheels[package])

    assert ("MIT", "LICENSE", "text/markdown") == (
        said["License-Expression"],
        said["License-File"],
        said["Description-Content-Type"],
    )
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names(wheels[package]))


def test_a_turn_in_a_clean_environment(clean_environment, tmp_path):
    """With the wheels and their declared dependencies alone, the host finds the plugin `tally` and runs turns with it."""
    done = clean_environment.run(ONE_TURN, tmp_path)

    assert ("[[], ['tally']] ok True\n", "", 0) == (done.stdout, done.stderr, done.returncode)


def test_nothing_else_comes_along(clean_environment, tmp_path):
    """The clean environment has no test framework, no linter and no other agent framework."""
    code = (
        "import importlib.util as u; print([n for n in ('pytest', 'mypy', 'openai', 'hypothesis') if u.find_spec(n)])"
    )

    assert "[]\n" == clean_environment.run(code, tmp_path).stdout


def test_the_packages_are_the_installed_ones(clean_environment, tmp_path):
    """Packages imported in the clean environment come from its site-packages, not from the checkout."""
    code = f"import {', '.join(SOURCES)} as last; print([m.__file__ for m in ({', '.join(list(SOURCES)[:-1])}, last)])"

    said = clean_environment.run(code, tmp_path).stdout

    assert said.count("site-packages") == len(SOURCES)
    assert str(ROOT) not in said


@pytest.mark.parametrize("environment", ["clean_environment", "development_environment"])
@NO_PACKAGES
def test_folders_are_no_packages(environment, name, tmp_path, request):
    """From outside the checkout the folders of the repository cannot be imported, however it was installed."""
    done = request.getfixturevalue(environment).run(f"import {name}", tmp_path)

    assert f"ModuleNotFoundError: No module named '{name}'" == done.stderr.strip().splitlines()[-1]


@pytest.mark.parametrize("package", SOURCES)
def test_editable_packages_are_found(development_environment, package, tmp_path):
    """From outside the checkout the editable packages can be imported, and lie in it."""
    said = development_environment.run(f"import {package}; print({package}.__file__)", tmp_path).stdout

    assert str(SOURCES[package] / package / "__init__.py") == said.strip()


def test_the_contract_needs_little(clean_environment, tmp_path):
    """The contract imports neither the host's libraries nor the host."""
    code = "import sys, beaver_hostspecs; print({'beaver_hooks', 'cattrs', 'structlog', 'apsw'} & set(sys.modules))"

    assert "set()\n" == clean_environment.run(code, tmp_path).stdout


def test_python_version(wheels):
    """The wheels ask for a Python that this one satisfies, and run on every platform."""
    assert {">=3.11"} == {metadata(wheel)["Requires-Python"] for wheel in wheels.values()}
    assert all(wheel.name.endswith("-py3-none-any.whl") for wheel in wheels.values())
    assert sys.version_info >= (3, 11)
