"""What a plugin says of itself is taken only where nothing of it can run code or flood the system prompt."""

import attrs
import pytest

from beaver_hooks.plugins.contract_checks import check_info
from beaver_hostspecs import CONTRACT_VERSION, Deadlines, PluginInfo, PluginRefused


class Cunning(str):
    """A str that ends the process of any code that looks at it."""

    __slots__ = ()

    def __len__(self):
        raise SystemExit

    partition = __len__


class CunningSeconds(float):
    """A number that ends the process of any code that looks at it."""

    __slots__ = ()


class CunningInfo(PluginInfo):
    """A subclass of the class of descriptions."""


@attrs.frozen
class Settings:
    top: int = 3


def described(**fields):
    return PluginInfo(**{"version": "1", "contract": CONTRACT_VERSION, **fields})


PATH = "its `settings_path` is not a section of the configuration; write `memory.<name>` or `plugins.<name>`"
FAULTS = [
    (None, "hook `describe` returned NoneType; it must return a PluginInfo"),
    ({"version": "1"}, "hook `describe` returned dict; it must return a PluginInfo"),
    (PluginInfo, "hook `describe` returned type; it must return a PluginInfo"),
    (CunningInfo(version="1", contract="1.0"), "hook `describe` returned CunningInfo; it must return a PluginInfo"),
    (object.__new__(PluginInfo), "`version` of its PluginInfo is a NoneType; it must be a str"),
    (described(version=Cunning("1")), "`version` of its PluginInfo is a Cunning; it must be a str"),
    (
        described(contract=Cunning("1.0")),
        '`contract` of its PluginInfo is a Cunning; it must be a str (use a text: contract="1.0")',
    ),
    (described(contract=1.0), '`contract` of its PluginInfo is a float; it must be a str (use a text: contract="1.0")'),
    (described(settings_path=Cunning("a")), "`settings_path` of its PluginInfo is a Cunning; it must be a str"),
    (described(rules=[Cunning("a")]), "one of its rules is a Cunning; it must be a str"),
    (described(rules=["a"] * 11), "it has 11 rules; at most 10 fit in the system prompt"),
    (described(rules=["a" * 4001]), "one of its rules has 4,001 characters; at most 4,000 fit in the system prompt"),
    (
        described(deadlines=Deadlines(start=CunningSeconds(1))),
        "its deadline for `start` is a CunningSeconds; it must be a number of seconds",
    ),
    (described(settings=dict), "its `settings` is not an attrs class; declare one with @attrs.frozen"),
    (described(settings=Settings, settings_path="host"), PATH),
    (described(settings=Settings, settings_path="memory.mode"), PATH),
    (
        described(contract="999.0"),
        (
            f"it needs contract 999.0, and this host has contract {CONTRACT_VERSION}; "
            "install a version of the plugin for this contract"
        ),
    ),
]


@pytest.mark.parametrize(("info", "fault"), FAULTS, ids=range(len(FAULTS)))
def test_descriptions_that_are_refused(info, fault):
    """Every fault has a sentence of its own, and no code of the plugin's is run to find it."""
    with pytest.raises(PluginRefused) as caught:
        check_info("odd", info)

    assert (str(caught.value), caught.value.plugin) == (f"plugin `odd` was refused: {fault}", "odd")


def test_a_good_description_is_copied():
    """The host keeps a copy of its own; another minor version of the contract is welcome."""
    minor = CONTRACT_VERSION.partition(".")[0] + ".999"
    info = described(
        contract=minor, settings=Settings, settings_path="memory.odd", rules=["a" * 4000] * 10,
        deadlines=Deadlines(start=1, stop=2.5),
    )  # fmt: skip
    copy = check_info("fine", info)

    assert copy == info
    assert (copy is info, copy.deadlines is info.deadlines) == (False, False)
