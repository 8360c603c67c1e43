"""The commands that are made from the table of operations, over a host in this process."""

import asyncio
import json
from datetime import UTC, datetime

import attrs
import click
import pytest
from click.testing import CliRunner

from beaver_hooks import Host
from beaver_hooks.config import Config
from beaver_hooks.config.model import Memory
from beaver_hooks_local import make_plugin
from beaver_hooks_local.cli import group
from beaver_hooks_local.cli.operation_commands import text_of
from beaver_memory.records import Person, SessionSummary
from beaver_memory.runtime.reports import EmbedReport, PeopleReport, SessionsReport
from beaver_memory.runtime.table import OPERATIONS

OFF = {"enabled": True, "embedding": {"provider": "none"}}
NOON = datetime(2026, 11, 19, 12, tzinfo=UTC)


class HostShell:
    """A shell over a host in this process, opened for each call."""

    def __init__(self, folder):
        self.folder = folder

    def call(self, function):
        return asyncio.run(self._call(function))

    async def _call(self, function):
        plugin = make_plugin()
        config = Config(memory=Memory(sections={"local": OFF}))
        async with Host({"local": plugin}, config=config, state_folder=self.folder):
            return await function(plugin)


@pytest.fixture(scope="module")
def shell(tmp_path_factory):
    """A memory that these tests only read."""
    made = HostShell(tmp_path_factory.mktemp("state"))
    for words in (
        ["Tea is at four.", "--person", "Ann"],
        ["Billing is deployed from stable."],
        ["The whale sings.", "--tag", "sea"],
        ["Bob likes rye.", "--user", "bob"],
    ):
        assert 0 == CliRunner().invoke(group, ["add", *words], obj=made, catch_exceptions=False).exit_code
    return made


@pytest.fixture
def run(shell):
    return lambda *words: CliRunner().invoke(group, [*map(str, words)], obj=shell, catch_exceptions=False)


@pytest.mark.shows("004-018")
def test_each_row_with_a_command_has_one():
    """The group has a command for each row of the table that names one, with its request's sentence as help."""
    named = {each.command: each.request.__doc__ for each in OPERATIONS.commands}
    helps = {name: group.commands[name].help for name in named}

    assert {"timeline", "history", "people", "sessions", "project"} == {*named}
    assert "Read a memory with its neighbours in time." == helps["timeline"]
    assert [] == [name for name, text in helps.items() if text.split(" ", 1)[1] not in named[name]]


@pytest.mark.parametrize("operation", OPERATIONS.commands, ids=lambda each: each.name)
def test_each_field_of_a_request_can_be_given(operation):
    """Each field of a request is an argument or an option with its default and a help text, or the filters."""
    params = {each.name: each for each in group.commands[operation.command].params}
    fields = attrs.fields_dict(operation.request)
    plain = {name: field for name, field in fields.items() if name not in {"visible", "owner"}}

    assert {*plain} <= {*params}
    assert "user" in params
    assert [] == [name for name in plain if isinstance(params[name], click.Option) and not params[name].help]
    assert {name: field.default for name, field in plain.items() if isinstance(field.default, int)} == {
        name: params[name].default for name, field in plain.items() if isinstance(field.default, int)
    }


def test_the_report_is_printed_as_json(run):
    """`--json` prints the fields of the report as a transport encodes them."""
    around = json.loads(run("timeline", 2, "--before", 1, "--after", 0, "--json").stdout)
    people = json.loads(run("people", "an", "--json").stdout)
    projected = json.loads(run("project", "whale", "--json").stdout)

    assert (["Tea is at four.", "Billing is deployed from stable."], False) == (
        [each["title"] for each in around["memories"]],
        around["has_more"],
    )
    assert [("Ann", 1)] == [(each["name"], each["mention_count"]) for each in people["people"]]
    assert ([3], 0) == (projected["ids"], projected["left_out"])
    assert {"sessions": []} == json.loads(run("sessions", "--json").stdout)
    assert ["ADD"] == [each["event"] for each in json.loads(run("history", 1, "--json").stdout)["changes"]]


def test_the_report_is_printed_as_text(run):
    """Without `--json` a person reads a table or lines, or that nothing was found."""
    rows = [line.split()[0] for line in run("timeline", 2, "--before", 1).stdout.splitlines()]

    assert ["id", "1", "2", "3"] == rows
    assert ["name", "Ann"] == [line.split()[0] for line in run("people").stdout.splitlines()]
    assert "- [3] The whale sings." == run("project", "whale").stdout.splitlines()[-1]
    assert "ADD" == run("history", 1).stdout.split()[-1]
    assert {"Nothing was found.\n"} == {
        run(*words).stdout for words in (["timeline", 9], ["history", 9], ["people", "zed"], ["sessions"])
    }


def test_filters_narrow_and_users_select(run):
    """The options of filters narrow a command, and `--user` selects the memories of a user with those of all."""
    plain, tagged = run("timeline", 3, "--before", 5), run("timeline", 3, "--before", 5, "--tag", "sea")
    bob = run("project", "rye", "--user", "bob")

    assert (4, 2) == (len(plain.stdout.splitlines()), len(tagged.stdout.splitlines()))
    assert ("Nothing was found.\n", True) == (run("project", "rye").stdout, "Bob likes rye." in bob.stdout)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["timeline", "1", "--before", "1001"], "'before' must be <= 1000."),
        (["sessions", "--limit", "0"], "'limit' must be >= 1."),
        (["project", "x", "--system-max-len", "0"], "'system_max_len' must be >= 1."),
        (["timeline", "x"], "An id is a whole number"),
        (["timeline"], "Missing argument 'ID'"),
        (["project"], "Missing argument 'WORDS"),
    ],
)
def test_a_value_out_of_bounds_is_an_error_of_usage(run, words, said):
    """A value that the request does not take is refused with the bound, before the memory is opened."""
    ran = run(*words)

    assert (2, True) == (ran.exit_code, said in ran.stderr)


@pytest.mark.shows("004-018", "004-141", "004-235")
def test_capabilities(run):
    """`capabilities` shows each operation, why one is missing, and how memories are found."""
    text, told = run("capabilities").stdout, json.loads(run("capabilities", "--json").stdout)
    reason = "it needs an embedder, and none is configured"

    assert {"visible": False, "reason": reason} == told["operations"]["embed"]
    assert [f"embed no {reason}", "embedder: none"] == [
        " ".join(line.split()) for line in text.splitlines() if line.startswith("embed")
    ]


def test_a_report_without_a_form_of_its_own():
    """Records are a table, other fields lines, and control characters of a memory are not printed."""
    person = Person(name="Ann", aliases=("A\x1b[31m",), mention_count=2, last_mentioned=NOON)
    summary = SessionSummary(session="s", outcome="Done.\nMore.", decisions=("a", "b"), created_at=NOON)

    assert "name  aliases  mention count  last mentioned\nAnn   A[31m    2              2026-11-19 12:00" == (
        text_of(PeopleReport(people=(person,)))
    )
    assert ["s", "Done. More.", "a, b", "0", "2026-11-19 12:00"] == [
        cell.strip()
        for cell in text_of(SessionsReport(sessions=(summary,))).splitlines()[1].split("  ")
        if cell.strip()
    ]
    assert "embedded: 3\npending: 1\nembedder: none" == text_of(EmbedReport(embedded=3, pending=1))
