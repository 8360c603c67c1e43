"""The JSON Schema for editors, and the complete example."""

import enum
import json
import runpy
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import attrs
import pytest
from jsonschema import Draft202012Validator

from beaver_hooks.config import Config, HostSettings, config_schema, parse_config
from beaver_hooks.config.type_hints import key_of, settings_fields
from beaver_hooks.plugins.settings_classes import settings_classes
from beaver_hostspecs import Secret
from beaver_hostspecs.settings import between, setting

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "config.example.json"
PUBLISHED = ROOT / "docs" / "reference" / "config.schema.json"
HOST_KEYS = [key_of(each) for each in settings_fields(HostSettings)]


class Colour(enum.StrEnum):
    RED = "red"


@attrs.frozen(kw_only=True)
class Inner:
    name: str


@attrs.frozen(kw_only=True)
class Settings:
    limit: int | None = setting(default=None, help="how many", validator=between(1, 9))
    colour: Colour = Colour.RED
    choice: Literal["a", 1] = "a"
    folder: Path = Path()
    token: Secret | None = None
    names: tuple[str, ...] = ("x",)
    inners: Mapping[str, Inner | None] = MappingProxyType({})
    bare_list: list = attrs.field(factory=list)
    bare_table: dict = attrs.field(factory=dict)
    anything: Any = None


@attrs.frozen(kw_only=True)
class TallySettings:
    recall_limit: int = setting(default=5, help="how many prompts to recall")


def test_section():
    """A section's schema has keys, types, bounds, defaults and help of its class, and nothing else is allowed."""
    inner = {
        "type": "object",
        "properties": {"name": {"type": "string"}},
        "additionalProperties": False,
        "required": ["name"],
    }
    variable = {"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$"}
    secret = {
        "anyOf": [
            {"type": "string", "minLength": 1},
            {
                "type": "object",
                "properties": {"env": variable},
                "required": ["env"],
                "additionalProperties": False,
            },
        ]
    }
    schema = config_schema({"memory.odd": Settings})

    assert schema["properties"]["memory"]["anyOf"][0]["properties"]["odd"] == {
        "type": "object",
        "properties": {
            "limit": {
                "anyOf": [{"type": "integer", "minimum": 1, "maximum": 9}, {"type": "null"}],
                "description": "how many",
                "default": None,
            },
            "colour": {"enum": ["red"], "default": "red"},
            "choice": {"enum": ["a", 1], "default": "a"},
            "folder": {"type": "string", "minLength": 1},
            "token": {"anyOf": [secret, {"type": "null"}], "default": None},
            "names": {"type": "array", "items": {"type": "string"}, "default": ["x"]},
            "inners": {"type": "object", "additionalProperties": {"anyOf": [inner, {"type": "null"}]}},
            "bareList": {"type": "array"},
            "bareTable": {"type": "object"},
            "anything": {"default": None},
        },
        "additionalProperties": False,
    }


def test_schema_is_valid_and_takes_the_example():
    """The whole schema is a schema, and the complete example fits it."""
    schema = config_schema(settings_classes(Config()))
    Draft202012Validator.check_schema(schema)

    assert [error.message for error in Draft202012Validator(schema).iter_errors(json.loads(EXAMPLE.read_bytes()))] == []


def test_fail_closed():
    """Every plugin may be fail-closed in `plugins`, one whose settings are in `memory` too."""
    schema = Draft202012Validator(config_schema({"memory.odd": Settings, "plugins.tally": TallySettings}))
    others = Draft202012Validator(config_schema(others=True))

    assert schema.is_valid({"plugins": {"odd": {"failClosed": True}, "tally": {"failClosed": False, "recallLimit": 1}}})
    assert not schema.is_valid({"plugins": {"odd": {"failClosed": True, "limit": 1}}})
    assert not schema.is_valid({"memory": {"odd": {"failClosed": True}}})
    assert not schema.is_valid({"plugins": {"tally": {"failClosed": 1}}})
    assert others.is_valid({"plugins": {"any": {"failClosed": True, "limit": 1}}})
    assert not others.is_valid({"plugins": {"any": {"failClosed": "yes"}}})


def test_other_sections():
    """Sections of unknown plugins are objects with any content, if the schema allows them."""
    schema = Draft202012Validator(config_schema(others=True))
    raw = {"memory": {"local": {"a": 1}}, "plugins": {"mottos": {"b": []}}}

    assert schema.is_valid(raw)
    assert not schema.is_valid({"plugins": {"mottos": 5}})
    assert not schema.is_valid({"hosts": {}})
    assert not Draft202012Validator(config_schema()).is_valid(raw)


def test_the_published_schema_is_current(capsys):
    """`python -m beaver_hooks.config` prints the schema that the documentation holds."""
    runpy.run_module("beaver_hooks.config", run_name="__main__")

    assert capsys.readouterr().out == PUBLISHED.read_text(encoding="utf-8")


def test_importing_the_command_prints_nothing(capsys):
    """Only running the command prints."""
    runpy.run_module("beaver_hooks.config.__main__", run_name="imported")

    assert capsys.readouterr().out == ""


def test_the_example_names_the_published_schema():
    """An editor that opens the example finds the schema, and the example fits it."""
    raw = json.loads(EXAMPLE.read_bytes())
    schema = json.loads((EXAMPLE.parent / raw["$schema"]).read_bytes())

    assert EXAMPLE.parent / raw["$schema"] == PUBLISHED
    assert [error.message for error in Draft202012Validator(schema).iter_errors(raw)] == []


def test_example_is_complete():
    """The example loads, names every host setting with its default but a small model, and a third party's section."""
    config = parse_config(EXAMPLE.read_bytes(), environment={})

    assert list(json.loads(EXAMPLE.read_bytes())["host"]) == HOST_KEYS
    assert attrs.evolve(config.host, small_model=None) == HostSettings()
    assert config.host.small_model is not None
    assert config.section("plugins.tally") == {"recallLimit": 3}


@pytest.mark.parametrize("key", HOST_KEYS)
def test_documented(key):
    """Every host setting is in the documentation."""
    assert f"| `{key}` |" in (ROOT / "docs" / "reference" / "configuration.md").read_text(encoding="utf-8")
