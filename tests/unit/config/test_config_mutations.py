"""Whatever is done to a configuration: a clean load, or one error that shows nothing of it."""

import copy
import json
import traceback
from pathlib import Path
from typing import Any, Literal

import attrs
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from beaver_hooks.config import Config, config_schema, parse_config, structure
from beaver_hooks.config.model import AgentSettings
from beaver_hostspecs import ConfigurationError, Secret
from beaver_hostspecs.settings import at_least, between, not_empty, setting

# Like a credential: what looks like a name may be shown where a key stands.
CANARY = "canary-4815162342"
EXAMPLE = Path(__file__).parents[3] / "config.example.json"


@attrs.frozen(kw_only=True)
class Store:
    url: str = setting(help="where it is", validator=not_empty())
    weight: float = setting(default=1.0, validator=between(0, 1))


@attrs.frozen(kw_only=True)
class TallySettings:
    recall_limit: int = setting(default=5, help="how many prompts to recall", validator=at_least(1))
    style: Literal["short", "long"] = "short"
    token: Secret | None = None
    folder: Path = Path()
    stores: tuple[Store, ...] = ()
    named: dict[str, Store] = attrs.field(factory=dict)


SECTIONS = {"plugins.tally": TallySettings}
SCHEMA = Draft202012Validator(config_schema(SECTIONS))


def base() -> dict[str, Any]:
    raw: dict[str, Any] = json.loads(EXAMPLE.read_bytes())
    raw["memory"] = {"mode": raw["memory"]["mode"]}  # the rest is read by plugins
    store = {"url": "https://a.example", "weight": 0.5}
    raw["plugins"]["tally"] |= {
        "style": "long", "token": {"env": "TOKEN"}, "folder": "~/x", "stores": [store], "named": {"a": store},
    }  # fmt: skip
    return raw


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, each in inside for place in places(each, (*path, key)))]


def replaced(place: tuple[Any, ...], value: Any) -> Any:
    root = [base()]
    holder: Any = root
    for step in (0, *place)[:-1]:
        holder = holder[step]
    holder[(0, *place)[-1]] = value
    return root[0]


def load(text: str | bytes) -> Config:
    config = parse_config(text, environment={"TOKEN": "a token of some length"})
    config.check_sections(claimed={"plugins.tally": "tally"})
    section = config.section("plugins.tally")
    if section is not None:
        structure(TallySettings, section, "plugins.tally", environment={})
    return config


def verdict(text: str | bytes, canary: str = CANARY) -> bool:
    """Return whether it loads; anything but a sanitised error raises or fails."""
    config, error = attempt(text)
    if error is None:
        assert canary not in repr(without_own_texts(config))
        return True
    shown = "".join(traceback.format_exception(error, chain=True))
    assert canary not in "".join([shown, repr(error), repr(error.args), error.path, error.problem])
    assert (error.__context__, error.__cause__) == (None, None)
    return False


def without_own_texts(config: Config) -> Config:
    """Leave out the host's and the agent's own texts: names, folders and a prompt, which the loader does not hide."""
    plugins, host = attrs.evolve(config.plugins, disabled=()), attrs.evolve(config.host, state_folder=None)
    provider = attrs.evolve(config.provider, model=config.provider.model and "m")
    return attrs.evolve(config, schema=None, plugins=plugins, host=host, agent=AgentSettings(), provider=provider)


def attempt(text: str | bytes) -> tuple[Config | None, ConfigurationError | None]:
    try:
        return load(text), None
    except ConfigurationError as error:
        return None, error


def nested(depth: int) -> Any:
    value: Any = CANARY
    for _ in range(depth):
        value = [value]
    return value


WRONG = st.one_of(
    st.sampled_from([
        None, True, False, 0, -1, 0.5, 10**30, 10**120, float("nan"), float("inf"), "", CANARY, CANARY + "\ud800",
        CANARY + "\0", [], [CANARY], {}, {CANARY + "!": CANARY}, {"env": CANARY}, {"env": "TOKEN"}, {"env": "", "a": CANARY},
        f"~{CANARY}", [[[CANARY]]],
    ]),
    st.integers(1, 300).map(nested),
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.just(CANARY),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
        max_leaves=6,
    ),
)  # fmt: skip
PLACES = st.sampled_from(places(base()))


def test_the_base_loads():
    """The base of the mutations is a correct configuration."""
    assert verdict(json.dumps(base())) is True


@given(place=PLACES, value=WRONG)
def test_replaced_values(place, value):
    """Any value at any place loads, or ends in one error without any part of the value."""
    verdict(json.dumps(replaced(place, value)))


@given(place=PLACES, key=st.text(max_size=60) | st.just("queueLimits"), value=WRONG)
def test_added_keys(place, key, value):
    """An unknown key at any place is refused or belongs there; neither it nor its value gets out."""
    raw = base()
    holder: Any = raw
    for step in place:
        holder = holder[step]
    if isinstance(holder, dict):
        holder[key] = value
    verdict(json.dumps(raw))


@given(
    start=st.integers(0, 400),
    length=st.integers(0, 20),
    piece=st.binary(max_size=20)
    | st.sampled_from(
        [b"NaN", b"1e999", b"9" * 5000, b"[" * 60, b'"\\ud800"', b'"canary-4815162342', b"\xff", b"//", b"{" * 3000]
    ),
)
def test_mutated_bytes(start, length, piece):
    """Bytes cut out and put in anywhere never end in anything but a load or one error."""
    text = json.dumps(base()).encode()

    verdict(text[:start] + piece + text[start + length :])


@given(place=PLACES, value=WRONG)
def test_loader_is_as_strict_as_the_schema(place, value):
    """The loader refuses every text that the schema for editors refuses."""
    raw = replaced(place, value)
    # The round trip gives the schema what the loader sees.
    seen = json.loads(json.dumps(raw))
    if not SCHEMA.is_valid(copy.deepcopy(seen)):
        assert verdict(json.dumps(raw)) is False
