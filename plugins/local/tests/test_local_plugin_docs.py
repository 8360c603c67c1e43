"""The README of the local memory is true."""

import re
from importlib.metadata import entry_points
from pathlib import Path

import attrs
import pytest

from beaver_hooks.config.type_hints import key_of
from beaver_hooks_local import commands, make_plugin
from beaver_hooks_local.settings import LocalSettings
from beaver_hooks_local.tools.schemas import SCHEMAS
from beaver_memory.runtime import factory

HERE = Path(__file__).parent
README = (HERE.parent / "README.md").read_text("utf-8")
PACKAGE = HERE.parent / "src" / "beaver_hooks_local"
RUNTIME = Path(factory.__file__).parent
SOURCES = {path: path.read_text("utf-8") for folder in (PACKAGE, RUNTIME) for path in sorted(folder.rglob("*.py"))}


def settings_of(cls, prefix=""):
    for field in attrs.fields(cls):
        name = f"{prefix}{key_of(field)}"
        if attrs.has(type(field.default)):
            yield from settings_of(type(field.default), f"{name}.")
        else:
            yield name, field.default


@pytest.mark.parametrize(("name", "default"), [*settings_of(LocalSettings)])
def test_settings(name, default):
    """The table has each setting with its default, and the embedder's settings that most users need."""
    rows = [row for row in re.findall(r"^\| (`.+?) \| (.*?) \|", README, re.MULTILINE) if f"`{name}`" in row[0]]
    shown = {True: "`true`", False: "`false`", (): "`[]`"}.get(
        default, f"`{default:g}`" if isinstance(default, float) else f"`{default}`"
    )

    if not name.startswith("embedding.") or rows:
        assert [True] == [default is None or shown == value for _, value in rows]


def test_the_table_names_no_other_setting():
    """Every setting in the table exists."""
    table = README.split("| setting of", 1)[1].split("\n\n", 1)[0]
    named = {name for row in table.splitlines()[2:] for name in re.findall(r"`([\w.]+)`", row.split("|")[1])}

    assert set() == named - {name for name, _ in settings_of(LocalSettings)}


def test_tools_and_commands():
    """Each tool and each command is named, and so is each verdict of the gate with its reasons."""
    names = [*SCHEMAS, *(command.name for command in commands.offered(None))]
    gate = SOURCES[PACKAGE / "recall" / "gate.py"]
    found = re.findall(r'reason="(\w+)"|^ +\("(\w+)", |return "(\w+)"', gate, re.MULTILINE)
    reasons = {each for several in found for each in several if each}

    assert [] == [name for name in names if f"`{name}`" not in README]
    assert (12, []) == (len(reasons), [each for each in reasons if f"`{each}`" not in README])


def test_events():
    """Each audit event is named."""
    told = {name for text in SOURCES.values() for name in re.findall(r'(?:report\.event|_tell)\(\s*"(\w+)"', text)}

    assert (set(), True) == ({name for name in told if f"`{name}`" not in README}, len(told) > 5)


def test_the_library_example():
    """The Python example of the README runs."""
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    exec(compile(code, "README.md", "exec"), {})  # noqa: S102 - the test runs the example


def test_the_entry_point():
    """The entry point `local` names the factory."""
    (point,) = [each for each in entry_points(group="beaver_hooks") if each.name == "local"]

    assert (make_plugin, True) == (point.load(), make_plugin() is not make_plugin())
