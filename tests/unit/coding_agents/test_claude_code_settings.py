"""Our entries in Claude Code's settings are added, found and removed, and all other content stays."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaver_hooks.coding_agents.claude_code.settings import EVENTS, Entries, command, is_empty, look, put_in, take_out
from beaver_hostspecs import ConfigurationError

CLIENT = "/opt/x/beaver_hooks/coding_agents/claude_code/client.py"
COMMANDS = {name: command("/opt/x/python", CLIENT, each, ["--config=/a b/c.json"]) for name, each in EVENTS.items()}
OTHERS = {name: command("/opt/y/python", CLIENT, each, []) for name, each in EVENTS.items()}
FOREIGN = b"""{
    "model": "opus",
    "hooks": {
        "Stop": [{"matcher": "", "hooks": [{"type": "command", "command": "say 'done"}]}],
        "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "http", "url": "http://127.0.0.1:1"}]}]
    },
    "env": {"A": "\xc3\xa9"}
}
"""
BROKEN = {
    "is not JSON": [b"{", b"// c\n{}", b"\xff", b'{"a": NaN}', b"\xef\xbb\xbf{}"],
    "has the key a twice in one object": [b'{"a": 1, "a": 2}', b'{"b": [{"a": {}, "a": {}}]}'],
    "has the key [?] twice in one object": [b'{"k 1": 1, "k 1": 2}'],
    "is not a JSON object": [b"[]", b'"hooks"', b"1"],
    "has `hooks` in a form that Claude Code does not document": [
        b'{"hooks": []}',
        b'{"hooks": null}',
        b'{"hooks": {"Stop": {}}}',
        b'{"hooks": {"Stop": ["x"]}}',
        b'{"hooks": {"Stop": [{}]}}',
        b'{"hooks": {"Stop": [{"hooks": {}}]}}',
        b'{"hooks": {"Stop": [{"hooks": ["x"]}]}}',
    ],
}


def ours(found):
    return {name: [group["hooks"][0]["command"] for group in groups][-1] for name, groups in found["hooks"].items()}


def test_the_command():
    """A command is a line for a shell that runs the client isolated, with its options quoted."""
    expected = f"/opt/x/python -I -S {CLIENT} --seconds=6 --start '--config=/a b/c.json'"

    assert expected == COMMANDS["SessionStart"]
    assert f"/opt/y/python -I -S {CLIENT} --seconds=1" == OTHERS["SessionEnd"]


@pytest.mark.parametrize("content", [b"", b" \n", b"{}", b'{"hooks": {}}'])
def test_into_nothing(content):
    """A file without hooks gets one entry per event, each with a timeout after the client's own."""
    found = json.loads(put_in(content, COMMANDS))

    assert ["hooks"] == list(found)
    assert COMMANDS == ours(found)
    assert [8, 8, 4, 4, 4, 13, 3] == [groups[0]["hooks"][0]["timeout"] for groups in found["hooks"].values()]


def test_line_ends():
    """A file with CRLF line ends keeps them."""
    content = put_in(FOREIGN.replace(b"\n", b"\r\n"), COMMANDS)

    assert put_in(FOREIGN, COMMANDS) == content.replace(b"\r\n", b"\n")
    assert content.count(b"\n") == content.count(b"\r\n")


def test_a_client_of_somebody_elses():
    """A command whose path only ends like ours is kept."""
    entry = {"type": "command", "command": "python /opt/other/adapters/claude_code/client.py"}
    content = json.dumps({"hooks": {"Stop": [{"hooks": [entry]}]}}).encode()

    assert content == take_out(content)
    assert entry in json.loads(put_in(content, COMMANDS))["hooks"]["Stop"][0]["hooks"]


@pytest.mark.parametrize("line", ["my-logger --wrap {}", "my-logger {}", "env A=1 {}", "echo {} | sh"])
def test_our_client_as_an_argument(line):
    """A command that passes ours to another program is kept."""
    entry = {"type": "command", "command": line.format(COMMANDS["Stop"])}
    content = json.dumps({"hooks": {"Stop": [{"hooks": [entry]}]}}).encode()

    assert content == take_out(content)


def test_numbers():
    """Numbers of other settings keep their notation."""
    numbers = b"[1e5, 1.10, 0.12345678901234567890, -0, 1e999, " + b"7" * 5000 + b"]"
    content = b'{"a": [%s], "hooks": {}}' % numbers
    after = take_out(put_in(content, COMMANDS))

    assert numbers.replace(b" ", b"") in after.replace(b" ", b"").replace(b"\n", b"")


def test_beside_others():
    """Other settings and hooks keep their order and stand before ours, with the file's own indentation."""
    content = put_in(FOREIGN, COMMANDS)
    found, before = json.loads(content), json.loads(FOREIGN)

    assert ["model", "hooks", "env"] == list(found)
    assert [
        "Stop",
        "PreToolUse",
        "SessionStart",
        "UserPromptSubmit",
        "PostToolUse",
        "PostToolUseFailure",
        "PreCompact",
        "SessionEnd",
    ] == list(found["hooks"])
    assert before["hooks"]["Stop"] == found["hooks"]["Stop"][:-1]
    assert before["hooks"]["PreToolUse"] == found["hooks"]["PreToolUse"]
    assert content.startswith(b'{\n    "model": "opus",\n')
    assert content.endswith('"A": "é"\n    }\n}\n'.encode())


def test_again():
    """Adding the same entries again changes no byte, and other commands of ours replace the first."""
    once = put_in(FOREIGN, COMMANDS)

    assert once == put_in(once, COMMANDS)
    assert put_in(FOREIGN, OTHERS) == put_in(once, OTHERS)


def test_out_again():
    """Removing our entries restores the other content and drops objects that become empty."""
    assert json.loads(FOREIGN) == json.loads(take_out(put_in(FOREIGN, COMMANDS)))
    assert b"{}" == take_out(put_in(b"{}", COMMANDS))
    assert FOREIGN == take_out(FOREIGN)


def test_a_group_with_others():
    """An entry of ours in a group of other entries is removed alone, and empty lists of others stay."""
    entry = {"type": "command", "command": COMMANDS["Stop"]}
    theirs = {"type": "command", "command": "true"}
    hooks = {"Stop": [{"matcher": "x", "hooks": [entry, theirs]}, {"hooks": []}], "PreToolUse": []}
    expected = {"hooks": {"Stop": [{"matcher": "x", "hooks": [theirs]}, {"hooks": []}], "PreToolUse": []}}

    assert expected == json.loads(take_out(json.dumps({"hooks": hooks}).encode()))


@pytest.mark.parametrize(("problem", "content"), [(problem, each) for problem, all_ in BROKEN.items() for each in all_])
@pytest.mark.parametrize("do", [take_out, look, lambda content: put_in(content, COMMANDS)])
def test_what_is_refused(do, problem, content):
    """A file that is no settings file of Claude Code is refused, with the remedy and without a value."""
    with pytest.raises(ConfigurationError) as caught:
        do(content)

    expected = (
        f"the settings file of Claude Code {problem}; nothing was changed; correct the file, and run the command again"
    )
    assert expected == str(caught.value)


def test_looking():
    """`look` finds our commands per event, the missing events, the programs, and `disableAllHooks`."""
    found = look(put_in(FOREIGN, COMMANDS))
    less = json.loads(put_in(b"{}", COMMANDS)) | {"disableAllHooks": True}
    del less["hooks"]["Stop"]
    half = look(json.dumps(less).encode())

    assert Entries(commands={name: (COMMANDS[name],) for name in found.commands}, switched_off=False) == found
    assert (True, (), frozenset({"/opt/x/python", CLIENT})) == (found.complete, found.missing, found.programs)
    assert (False, ("Stop",), True) == (half.complete, half.missing, half.switched_off)
    assert Entries(commands={}, switched_off=False) == look(FOREIGN)


def test_half_of_a_surrogate_pair():
    """Half of a surrogate pair, which JSON can escape and UTF-8 cannot encode, stays escaped."""
    content = b'{"a": "\\ud800"}'

    assert {"a": "\ud800"} == json.loads(take_out(put_in(content, COMMANDS)))


def test_being_empty():
    """A file without settings is empty, whatever its spaces."""
    assert [True, True, True, False] == [is_empty(each) for each in (b"", b"\n", b" { } ", b'{"a": 1}')]


TEXTS = st.text(max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda each: st.lists(each, max_size=3) | st.dictionaries(TEXTS, each, max_size=3),
    max_leaves=8,
)
ENTRIES = st.fixed_dictionaries({"type": TEXTS}, optional={"command": TEXTS | st.integers(), "timeout": VALUES})
GROUPS = st.fixed_dictionaries({"hooks": st.lists(ENTRIES, max_size=2)}, optional={"matcher": TEXTS})
HOOKS = st.dictionaries(st.sampled_from([*EVENTS, "Other"]), st.lists(GROUPS, min_size=1, max_size=2), min_size=1)
SETTINGS = st.builds(
    lambda before, hooks, after: {**before, **hooks, **after},
    st.dictionaries(TEXTS.filter(lambda key: key != "hooks"), VALUES, max_size=3),
    st.fixed_dictionaries({}, optional={"hooks": HOOKS}),
    st.dictionaries(TEXTS.filter(lambda key: key != "hooks"), VALUES, max_size=2),
)


@given(SETTINGS, st.sampled_from([None, 1, 4, "\t"]), st.booleans())
def test_any_settings(settings, indent, ascii_only):
    """Adding and removing our entries keeps every value and the order of keys; adding twice equals adding once."""
    content = json.dumps(settings, indent=indent, ensure_ascii=ascii_only).encode()
    once = put_in(content, COMMANDS)
    after = take_out(once)

    assert once == put_in(once, COMMANDS) == put_in(put_in(content, OTHERS), COMMANDS)
    assert look(once).complete
    assert json.dumps(settings) == json.dumps(json.loads(after))


@given(st.binary(max_size=40) | st.text(alphabet='{}[]":,hooks 1e', max_size=30).map(str.encode))
def test_any_bytes(content):
    """Any bytes are either refused or get all of our entries."""
    try:
        once = put_in(content, COMMANDS)
    except ConfigurationError:
        return
    assert look(once).complete
