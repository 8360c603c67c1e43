"""What a person is shown of a configuration: its settings, what changed of them, and no credential."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaver_hooks.config.entries import entries_of, quoted, quoted_change
from beaver_hooks.config.summaries import compare, summarise
from beaver_hostspecs import Secret


def shown(key: str, value: object) -> list[str]:
    summary = summarise({key: value}, Path("/x"), changed=False)
    return [f"{each.kind} {each.name}".rstrip() for each in summary.entries]


@pytest.mark.parametrize(
    "key",
    [
        "command", "program", "executable", "cmd", "CMD", "startcmd", "run", "exec", "script", "shell", "bin", "binary",
        "interpreter", "entrypoint", "buildScript", "pre-run", "on_start_shell", "runHTTPScript", "scripts", "commands",
    ],
)  # fmt: skip
def test_programs_by_whatever_name(key):
    """A summary shows the program that a setting starts, also under an unusual name of the setting."""
    assert shown(key, "/bin/sh -c canary") == ["program /bin/sh"]


@pytest.mark.parametrize("key", ["transcript", "description", "seashell", "shellName", "runAs", "robin", "s", "1", ""])
def test_what_only_sounds_like_a_program(key):
    """A text under a key that merely has such letters in it is not shown."""
    assert shown(key, "canary") == ["text"]


def test_lists_of_programs():
    """A summary shows the first word of a command in a list, and the first word of each of several commands."""
    assert shown("cmd", ["/bin/sh", "canary"]) == ["program /bin/sh", "text"]
    assert shown("scripts", ["one canary", "two canary"]) == ["program one", "program two"]
    assert shown("shell", {"token": "canary"}) == ["secret"]


@given(st.text(max_size=30).filter(lambda key: key != "$schema"))
def test_any_key(key):
    """A text under any key is one entry, which shows no more than its first word."""
    (entry,) = shown(key, "first canary")

    assert "canary" not in entry


# --- Values and secrets -------------------------------------------------------------------------------------------


@attrs.frozen(kw_only=True)
class Store:
    url: str = ""
    login: Secret | None = None
    colour: Literal["red", "blue"] = "red"


@attrs.frozen(kw_only=True)
class Settings:
    name: str = ""
    phrase: Secret | None = None
    sort_key: str = ""
    password: tuple[str, ...] = ()
    stores: tuple[Store, ...] = ()
    named: Mapping[str, Store] = MappingProxyType({})
    folder: Path | None = None
    anything: Any = None


@attrs.frozen(kw_only=True)
class Odd:
    name: "NoSuchType"  # noqa: F821 - that is the point


CLASSES = {"memory.m": Settings, "plugins.o": Odd}
SECRET = "canary-4815162342"


def listed(raw: Mapping[str, Any]) -> list[str]:
    return [str(each) for each in entries_of(raw, classes=CLASSES)]


def test_values_are_shown_where_they_are_no_secret():
    """A person sees the very texts and numbers that they confirm: of the host, and of plugins whose settings are known."""
    assert listed(
        {
            "$schema": "x",
            "agent": {"systemPrompt": "Be brief.\n\x1b[2J", "skills": ["maps"], "maxToolRounds": 3, "skillFolders": []},
            "host": {"background": False, "stateFolder": None},
            "memory": {"mode": "curated", "m": {"name": "x", "folder": "~/y", "named": {"a": {"colour": "blue"}}}},
            "plugins": {"m": {"failClosed": True}, "n": {}},
        }
    ) == [
        'agent.systemPrompt: "Be brief.\\n\\u001b[2J"',
        'agent.skills: ["maps"]',
        "agent.maxToolRounds: 3",
        "agent.skillFolders: []",
        "host.background: false",
        "host.stateFolder: null",
        'memory.mode: "curated"',
        'memory.m.name: "x"',
        'memory.m.folder: "~/y"',
        'memory.m.named.a.colour: "blue"',
        "plugins.m.failClosed: true",
        "plugins.n: {}",
    ]


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ({"provider": {"apiKey": SECRET}}, "provider.apiKey: secret"),
        ({"memory": {"m": {"phrase": SECRET}}}, "memory.m.phrase: secret"),
        ({"memory": {"m": {"stores": [{"login": SECRET}]}}}, "memory.m.stores[0].login: secret"),
        ({"memory": {"m": {"named": {"a": {"login": SECRET}}}}}, "memory.m.named.a.login: secret"),
        ({"memory": {"m": {"sortKey": SECRET}}}, "memory.m.sortKey: secret"),
        ({"memory": {"m": {"phrase": {"env": "MY_PHRASE"}}}}, "memory.m.phrase: environment variable MY_PHRASE"),
        ({"memory": {"m": {"anything": SECRET}}}, "memory.m.anything: text"),
        ({"memory": {"m": {"anything": {"deep": [SECRET]}}}}, "memory.m.anything.deep[0]: text"),
        (
            {"memory": {"m": {"stores": [{"url": f"https://u:{SECRET}@h/{SECRET}"}]}}},
            "memory.m.stores[0].url: address h",
        ),
        ({"memory": {"unknown": {"name": SECRET}}}, "memory.unknown.name: text"),
        ({"plugins": {"o": {"name": SECRET}}}, "plugins.o.name: text"),
        ({"agent": {"skills": [f"x://h?{SECRET}"]}}, 'agent.skills: ["x://h?***"]'),
        ({"memory": {"m": {"tokens": [SECRET]}}}, "memory.m.tokens[0]: text"),
        ({"memory": {"m": {"password": [SECRET]}}}, "memory.m.password[0]: secret"),
        ({"plugins": {"unknown": {"pin": 4711}}}, "plugins.unknown.pin: number"),
        ({"plugins": {SECRET: {"a": "b"}}}, "plugins.[?].a: text"),
        (
            {"agent": {"systemPrompt": f"Ask https://u:{SECRET}@h/p, or http://h/?k={SECRET} or x://h/#{SECRET}"}},
            'agent.systemPrompt: "Ask https://***@h/p, or http://h/?*** or x://h/#***"',
        ),
    ],
)
def test_what_is_never_shown(raw, expected):
    """A summary hides secrets by class or key, possible secrets in addresses, and texts of unknown plugins."""
    entries = entries_of(raw, classes=CLASSES)

    assert [expected] == [str(each) for each in entries]
    assert SECRET not in repr([attrs.astuple(each) for each in entries])


def test_a_prompt_cannot_hide_as_an_address():
    """A text of the host's own that begins like an address is shown as the text that it is."""
    assert listed({"agent": {"systemPrompt": "x://y Tell everything."}}) == [
        'agent.systemPrompt: "x://y Tell everything."'
    ]


# --- What changed -------------------------------------------------------------------------------------------------


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    old, new = (entries_of(raw, salt="s", classes=CLASSES) for raw in (before, after))
    return [str(each) for each in compare(old, new)]


PROMPT = {"agent": {"systemPrompt": "old text"}}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (PROMPT, {"agent": {"systemPrompt": "new text"}}, ['agent.systemPrompt: "old text" -> "new text"']),
        ({}, PROMPT, ['agent.systemPrompt: added "old text"']),
        (PROMPT, {}, ['agent.systemPrompt: removed, was "old text"']),
        (PROMPT, PROMPT | {"$schema": "x"}, []),
        ({"host": {"queueLimit": 1}}, {"host": {"queueLimit": 2}}, ["host.queueLimit: 1 -> 2"]),
        ({"a": {}}, {"a": []}, ["a: {} -> []"]),
        (
            {"provider": {"apiKey": SECRET}},
            {"provider": {"apiKey": {"env": "KEY"}}},
            ["provider.apiKey: secret -> environment variable KEY"],
        ),
        (
            {"provider": {"apiKey": SECRET}},
            {"provider": {"apiKey": SECRET + "2"}},
            ["provider.apiKey: secret -> secret (changed where it is not shown)"],
        ),
        (
            {"provider": {"baseUrl": "http://a/v1"}},
            {"provider": {"baseUrl": "http://a/v2"}},
            ["provider.baseUrl: address a -> address a (changed where it is not shown)"],
        ),
        (
            {"plugins": {"disabled": ["a", "b"]}},
            {"plugins": {"disabled": ["b"]}},
            ['plugins.disabled: ["a", "b"] -> ["b"]'],
        ),
        (
            {"plugins": {"1 2": {"n": 1}, "3 4": {"n": 2}}},
            {"plugins": {"1 2": {"n": 1}, "3 4": {"n": 3}}},
            ["plugins.[?].n: 2 -> 3"],
        ),
    ],
)
def test_what_changed(before, after, expected):
    """A summary lists each changed setting with its old and new value, and no other setting."""
    assert changes(before, after) == expected


def test_a_long_text_is_shown_around_its_difference():
    """A change of a long text shows only the difference, the text around it and both lengths."""
    common = "word " * 200
    (shown,) = changes(
        {"agent": {"systemPrompt": f"{common}Answer.{common}"}},
        {"agent": {"systemPrompt": f"{common}Obey me.{common}"}},
    )
    around = ("word " * 8, ("word " * 8).rstrip())

    assert shown == (
        f'agent.systemPrompt: "\u2026{around[0]}Answer.{around[1]}\u2026" -> '
        f'"\u2026{around[0]}Obey me.{around[1]}\u2026" (2,007 -> 2,008 characters)'
    )


def test_a_long_text_is_shown_with_its_length():
    """A long text shows its start and its end, the number of omitted characters, and its length."""
    text = "".join(f"{number:04}" for number in range(500))

    assert quoted(text) == f'"{text[:240]}\u2026 1,640 more \u2026{text[-120:]}" (2,000 characters)'


TEXTS = st.one_of(st.text(max_size=20), st.text(alphabet="ab\u202e\x9b", min_size=390, max_size=900))


@given(TEXTS, TEXTS)
def test_quotes_are_one_harmless_line(before, after):
    """Any text is shown on one line, in printable characters, and in moderate length."""
    for shown in (quoted(before), quoted_change(before, after)):
        assert shown.isprintable()
        assert len(shown) < 10_000


@given(st.text(alphabet="ab", min_size=300, max_size=900), st.text(alphabet="ab", min_size=401, max_size=900))
def test_a_change_of_a_long_text_shows_a_difference(before, after):
    """Two long texts that are not the same are not shown as the same."""
    one, _, other = quoted_change(before, after).rpartition(" (")[0].partition(" -> ")

    assert before == after or one != other


# --- Summaries ----------------------------------------------------------------------------------------------------


def test_a_summary_of_what_changed():
    """With a known earlier version, the summary lists the changes and the number of unchanged settings."""
    before = {"agent": {"systemPrompt": "a", "maxToolRounds": 1}, "host": {"queueLimit": 1}}
    after = {"agent": {"systemPrompt": "b", "maxToolRounds": 1}, "plugins": {"disabled": ["x"]}}
    previous = entries_of(before, salt="s")
    summary = summarise(after, Path("/x"), changed=True, previous=previous, salt="s")

    assert str(summary).splitlines() == [
        "/x",
        '  agent.systemPrompt: "a" -> "b"',
        '  plugins.disabled: added ["x"]',
        "  host.queueLimit: removed, was 1",
        "  as they were: 1 other settings",
    ]


def test_a_summary_of_nothing_that_changed():
    """Without a difference, the summary shows all settings."""
    entries = entries_of(PROMPT, salt="s")
    summary = summarise(PROMPT, Path("/x"), changed=True, previous=entries, salt="s")

    assert str(summary).splitlines() == ["/x", '  agent.systemPrompt: "old text"']
