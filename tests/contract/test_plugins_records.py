"""What a plugin says about itself, and what the host hands to it."""

from pathlib import Path

import attrs
import pytest

from beaver_hostspecs import (
    Command,
    CommandContext,
    Deadlines,
    PluginInfo,
    Scope,
    Services,
    Setup,
    Tool,
    Trust,
)
from beaver_hostspecs.testing import COROUTINE_HOOKS, RecordingReport, make_turn


async def run(*arguments):
    return "ran"


def test_two_versions_are_enough():
    """Everything but the plugin's version and the contract's has a default: no settings, no rules."""
    assert PluginInfo(
        version="1.2",
        contract="1.0",
        summary="",
        settings=None,
        settings_path=None,
        rules=(),
        deadlines=Deadlines(),
    ) == PluginInfo(version="1.2", contract="1.0")


@pytest.mark.parametrize("fields", [{"version": "1"}, {"contract": "1.0"}])
def test_both_versions_are_required(fields):
    """A default for the contract could never disagree with the installed one."""
    with pytest.raises(TypeError):
        PluginInfo(**fields)


@pytest.mark.parametrize(
    "overrides",
    [
        {"version": 1},
        {"contract": None},
        {"summary": None},
        {"settings": "a.name"},
        {"settings_path": 1},
        {"rules": "one rule"},
        {"rules": [1]},
        {"deadlines": {"start": 1}},
    ],
)
def test_a_description_is_checked(overrides):
    """A wrong type is refused where the plugin describes itself."""
    with pytest.raises(TypeError):
        PluginInfo(**{"version": "1", "contract": "1.0", **overrides})


def test_there_is_a_deadline_for_every_coroutine_hook():
    """The fields of `Deadlines` are the coroutine hooks, and none is set."""
    assert dict.fromkeys(sorted(COROUTINE_HOOKS)) == dict(sorted(attrs.asdict(Deadlines()).items()))


@pytest.mark.parametrize("hook", COROUTINE_HOOKS)
@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
def test_deadlines_are_positive(hook, seconds):
    """No time, less than none, or not a number, is refused."""
    with pytest.raises(ValueError):
        Deadlines(**{hook: seconds})


def test_a_deadline_is_kept():
    """A positive number is taken as it is."""
    assert 0.5 == Deadlines(before_prompt=0.5).before_prompt


def test_a_setup_has_harmless_defaults(tmp_path):
    """A host without modes and services says nothing about them."""
    report = RecordingReport()
    setup = Setup(settings=None, state_folder=tmp_path, report=report)

    assert (None, None, False, tmp_path, Services(small_model=None), report) == (
        setup.settings,
        setup.mode,
        setup.explicit,
        setup.state_folder,
        setup.services,
        setup.report,
    )


def test_the_state_folder_is_a_path():
    """A str is refused: plugins join paths to it."""
    with pytest.raises(TypeError):
        Setup(settings=None, state_folder="folder", report=RecordingReport())
    assert Path("folder") == Setup(settings=None, state_folder=Path("folder"), report=None).state_folder


def test_the_schema_of_a_tool_is_plain_data():
    """`schema` gives fresh dicts and lists: changing them changes nothing."""
    parameters = {"type": "object", "required": ["query"]}
    tool = Tool(name="recall", description="Recalls.", parameters=parameters, run=run)
    parameters["required"].append("more")
    tool.schema["parameters"]["required"].append("even more")

    expected = {
        "name": "recall",
        "description": "Recalls.",
        "parameters": {"type": "object", "required": ["query"]},
    }
    assert expected == tool.schema


def test_tools_and_commands_are_checked():
    """Names and descriptions are text."""
    with pytest.raises(TypeError):
        Tool(name=1, description="", parameters={}, run=run)
    with pytest.raises(TypeError):
        Tool(name="a", description=None, parameters={}, run=run)
    with pytest.raises(TypeError):
        Command(name=None, summary="", run=run)
    with pytest.raises(TypeError):
        Command(name="a", summary=None, run=run)


async def test_what_runs_stays_as_given():
    """Tools and commands carry the plugin's own coroutine functions, out of their repr."""
    tool = Tool(name="a", description="", parameters={}, run=run)
    command = Command(name="a", summary="", run=run)

    assert ["ran", "ran"] == [await tool.run({}, None, None), await command.run((), None, None)]
    assert "run" not in repr(tool) + repr(command)


def test_tools_and_commands_allow_everybody_by_default():
    """A plugin that says nothing of callers offers to all of them; one that does is asked with a turn or a context."""

    def is_full(caller):
        return caller.trust is Trust.FULL

    callers = [make_turn(), CommandContext(), make_turn(trust="full"), CommandContext(trust="full")]
    made = [
        (Tool(name="a", description="", parameters={}, run=run, **more), Command(name="a", summary="", run=run, **more))
        for more in ({}, {"allows": is_full})
    ]

    assert [[True] * 4] * 2 + [[False, False, True, True]] * 2 == [
        [offer.allows(caller) for caller in callers] for offers in made for offer in offers
    ]
    assert "allows" not in repr(made)


@pytest.mark.parametrize("name", ["session", "user"])
@pytest.mark.parametrize("blank", ["", " ", "\t\n", 42])
def test_a_caller_is_named_or_none(name, blank):
    """A blank session or user is refused: it would be taken for none."""
    with pytest.raises(ValueError) as caught:
        CommandContext(**{name: blank})

    assert f"{name} must be a str that is not blank, or None" == str(caught.value)


def test_a_command_trusts_nobody_by_default():
    """A host that does not know who runs a command says `public`."""
    assert CommandContext(session=None, user=None, scope=Scope(), trust=Trust.PUBLIC) == CommandContext()
    assert Trust.FULL is CommandContext(trust="full").trust
