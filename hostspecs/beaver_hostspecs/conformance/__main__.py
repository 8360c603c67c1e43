"""Examines a host or a plugin and prints the report: `python -m beaver_hostspecs.conformance module:MakeHarness`."""

import argparse
import asyncio
import importlib
import sys
from collections.abc import Callable, Sequence
from typing import Any

from beaver_hostspecs.conformance import (
    HOST_CASES,
    PLUGIN_CASES,
    Card,
    Case,
    Examined,
    PluginCard,
    as_json,
    as_markdown,
    examine_all,
)

Make = Callable[[], Any]


class TargetError(Exception):
    """The target cannot be examined; the text names the reason and a remedy."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Examine the target of the arguments; return 0 if every case passed or was excused, else 1."""
    parser = _parser()
    given = parser.parse_args(arguments)
    cases: tuple[Case[Any], ...] = PLUGIN_CASES if given.plugin else HOST_CASES
    try:
        chosen = _chosen(cases, given.case)
        make, card = _found(given.target, plugin=given.plugin)
    except TargetError as error:
        parser.error(str(error))
    examined = _examined(chosen, make, card)
    _print(as_json([examined]) if given.json else as_markdown([examined]))
    return 1 if examined.failures else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m beaver_hostspecs.conformance",
        description="Examine a host, or a plugin, and print what it came to. Exits with 1 where a case failed.",
    )
    parser.add_argument("target", metavar="module:name", help="where a harness is made: a class or a function")
    parser.add_argument("--plugin", action="store_true", help="it is the harness of a plugin, not of a host")
    parser.add_argument("--json", action="store_true", help="print JSON instead of Markdown")
    parser.add_argument("--case", action="append", metavar="NAME", help="examine this case only; may be repeated")
    return parser


def _chosen(cases: Sequence[Case[Any]], names: Sequence[str] | None) -> Sequence[Case[Any]]:
    known = {case.name: case for case in cases}
    for name in names or ():
        if name not in known:
            listed = ", ".join(f"`{each}`" for each in known)
            raise TargetError(f"there is no case `{name}`; there are {listed}")
    return cases if names is None else [known[name] for name in dict.fromkeys(names)]


def _found(target: str, *, plugin: bool) -> tuple[Make, Card | PluginCard]:
    """Return the factory of a harness, and the card of the host or plugin under examination."""
    make = _named(target)
    if not callable(make):
        raise TargetError(f"`{target}` cannot be called; name a class or a function that makes a harness")
    wanted = PluginCard if plugin else Card
    try:
        card = make().card
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        raise TargetError(f"`{target}` makes no harness with a card ({what}); give it an attribute `card`") from error
    if not isinstance(card, wanted):
        other = "leave out --plugin" if plugin else "add --plugin"
        raise TargetError(f"the card of `{target}` is no {wanted.__name__}; {other}, or give it one")
    return make, card


def _named(target: str) -> Any:
    module, colon, name = target.partition(":")
    if not (module and colon and name):
        raise TargetError(f"`{target}` is no target; write `module:name`, for example `my_tests.harness:MyHarness`")
    try:
        value = importlib.import_module(module)
    except ImportError as error:
        raise TargetError(f"`{module}` cannot be imported ({error}); is it on the path of this interpreter?") from error
    try:
        for part in name.split("."):
            value = getattr(value, part)
    except AttributeError:
        raise TargetError(f"`{module}` has no `{name}`; name a class or a function in it") from None
    return value


def _examined(cases: Sequence[Case[Any]], make: Make, card: Card | PluginCard) -> Examined:
    name = card.host if isinstance(card, Card) else card.plugin
    return Examined(name=name, verdicts=asyncio.run(examine_all(cases, make)), card=card)


def _print(text: str) -> None:
    """Print a text that may hold characters that the terminal cannot show, for example lone surrogates."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))


if __name__ == "__main__":
    sys.exit(main())
