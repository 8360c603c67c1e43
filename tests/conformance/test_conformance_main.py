"""The command `python -m beaver_hostspecs.conformance`."""

import json
import subprocess
import sys

import pytest
from conformance.notes import Notes, NotesHarness

from beaver_hostspecs.conformance import HOST_CASES, PLUGIN_CASES, Card, Examined, Outcome, PluginCard
from beaver_hostspecs.conformance.__main__ import main

NOTES = "conformance.notes:NotesHarness"
ALL = [case.name for case in PLUGIN_CASES]


class Empty:
    """A harness of a host whose card denies every capability that these tests ask for."""

    card = Card(host="empty", streaming=False, sync=False, notes={"sync": "It has no such thing."})
    calls = ()

    async def close(self):
        pass


class Odd(Notes):
    def contribution(self, turn, report):
        raise LookupError("a lone \ud83d surrogate")


def odd():
    return NotesHarness(Odd)


class Cardless:
    pass


NOTHING = None


def run(capsys, *arguments):
    """Return what the command returns, and what it prints."""
    code = main(arguments)
    printed = capsys.readouterr()
    assert "" == printed.err
    return code, printed.out


def refused(capsys, *arguments):
    """Return the last line that the command prints of arguments that it does not take."""
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert 2 == caught.value.code
    return capsys.readouterr().err.splitlines()[-1].removeprefix("python -m beaver_hostspecs.conformance: error: ")


def test_a_table(capsys):
    """A plugin that passes is printed as a table, and the command returns 0."""
    code, printed = run(capsys, NOTES, "--plugin", "--case", "valid hooks", "--case", "description")

    assert (0, "| case | notes |\n| --- | --- |\n| valid hooks | yes |\n| description | yes |\n") == (code, printed)


def test_json(capsys):
    """`--json` prints verdicts that parse back into the examination, card included."""
    code, printed = run(capsys, NOTES, "--plugin", "--json", "--case", "valid hooks")
    (examined,) = [Examined.from_dict(each) for each in json.loads(printed)]

    assert (0, PluginCard(plugin="notes", confirms_compaction=True)) == (code, examined.card)
    assert [("valid hooks", Outcome.PASSED)] == [(each.case, each.outcome) for each in examined.verdicts]


@pytest.mark.campaign
def test_every_case(capsys):
    """Without a choice every case is examined, in order."""
    code, printed = run(capsys, NOTES, "--plugin", "--json")

    assert (0, ALL) == (code, [each["case"] for each in json.loads(printed)[0]["verdicts"]])


def test_failures(capsys):
    """Where a case fails the reason is below the table, as far as it can be printed, and the command returns 1."""
    code, printed = run(capsys, f"{__name__}:odd", "--plugin", "--case", "ordinary turns")

    assert 1 == code
    assert printed.endswith(
        "\n- notes, ordinary turns: failed. AssertionError: `before_prompt` raised LookupError: a lone \\ud83d surrogate\n"
    )


def test_a_host(capsys):
    """A host is examined unless a plugin is meant; excuses are no failures."""
    code, printed = run(capsys, f"{__name__}:Empty", "--case", "sync entry point", "--case", "full stream")

    assert 0 == code
    assert (
        "| case | empty |\n| --- | --- |\n| sync entry point | excused |\n| full stream | excused |\n\n"
        "- empty, sync entry point: excused by `sync`. It has no such thing.\n"
        "- empty, full stream: excused by `streaming`.\n"
    ) == printed


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("", "`` is no target; write `module:name`, for example `my_tests.harness:MyHarness`"),
        ("json", "`json` is no target; write `module:name`, for example `my_tests.harness:MyHarness`"),
        (":loads", "`:loads` is no target; write `module:name`, for example `my_tests.harness:MyHarness`"),
        ("json:nobody", "`json` has no `nobody`; name a class or a function in it"),
        (
            f"{__name__}:NOTHING",
            f"`{__name__}:NOTHING` cannot be called; name a class or a function that makes a harness",
        ),
        (
            "no_such_module:x",
            "`no_such_module` cannot be imported (No module named 'no_such_module'); is it on the path of this interpreter?",
        ),
        (
            f"{__name__}:Cardless",
            f"`{__name__}:Cardless` makes no harness with a card (AttributeError: 'Cardless' object has no attribute 'card'); give it an attribute `card`",
        ),
        (NOTES, f"the card of `{NOTES}` is no Card; add --plugin, or give it one"),
    ],
)
def test_a_bad_target(capsys, target, expected):
    """A target that cannot be examined is refused in one sentence with a remedy."""
    assert expected == refused(capsys, target)


def test_a_host_as_a_plugin(capsys):
    """A host's harness is not taken for a plugin's."""
    target = f"{__name__}:Empty"

    assert f"the card of `{target}` is no PluginCard; leave out --plugin, or give it one" == refused(
        capsys, target, "--plugin"
    )


@pytest.mark.parametrize(("cases", "flags"), [(HOST_CASES, []), (PLUGIN_CASES, ["--plugin"])], ids=["host", "plugin"])
def test_an_unknown_case(capsys, cases, flags):
    """A case that is not there is refused, with those that are."""
    listed = ", ".join(f"`{case.name}`" for case in cases)

    assert f"there is no case `sings`; there are {listed}" == refused(capsys, NOTES, *flags, "--case", "sings")


def test_as_a_module(tmp_path):
    """It is run as a module, with harnesses from the working directory."""
    (tmp_path / "mine.py").write_text(
        "from beaver_hostspecs.conformance import PluginCard, PluginHarness\n"
        "from beaver_hostspecs.testing import RecordingPlugin\n\n\n"
        "class Mine(PluginHarness):\n"
        "    card = PluginCard(plugin='mine', holds_secret=False)\n\n"
        "    def make(self):\n"
        "        return RecordingPlugin()\n",
        "utf-8",
    )
    command = [sys.executable, "-m", "beaver_hostspecs.conformance", "mine:Mine", "--plugin", "--case"]
    passed, failed = (
        subprocess.run([*command, case], cwd=tmp_path, capture_output=True, text=True, check=False)
        for case in ("valid hooks", "contributions can be shown")
    )

    assert (0, 1) == (passed.returncode, failed.returncode)
    assert ("| case | mine |\n| --- | --- |\n| valid hooks | yes |\n", "") == (passed.stdout, passed.stderr)
    assert "its card says that it recalls" in failed.stdout
