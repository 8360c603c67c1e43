"""The results of examinations, as a table."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from beaver_hostspecs.conformance.cards import Card
from beaver_hostspecs.conformance.cases import Outcome, Verdict
from beaver_hostspecs.conformance.plugins.harness import PluginCard

_SHORT = {Outcome.PASSED: "yes", Outcome.EXCUSED: "excused", Outcome.FAILED: "**no**"}


@attrs.frozen(kw_only=True)
class Examined:
    """One host or plugin, and the verdicts of its examination."""

    name: str
    verdicts: tuple[Verdict, ...]
    card: Card | PluginCard | None = None

    @property
    def failures(self) -> tuple[Verdict, ...]:
        """The cases that failed."""
        return tuple(each for each in self.verdicts if each.outcome is Outcome.FAILED)

    @property
    def excuses(self) -> tuple[Verdict, ...]:
        """The cases that the card excused."""
        return tuple(each for each in self.verdicts if each.outcome is Outcome.EXCUSED)

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        card = None if self.card is None else self.card.as_dict()
        return {"name": self.name, "card": card, "verdicts": [attrs.asdict(each) for each in self.verdicts]}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Examined":
        """Return the object whose `as_dict` is `data`."""
        verdicts = [Verdict(**{**each, "outcome": Outcome(each["outcome"])}) for each in data["verdicts"]]
        return cls(name=data["name"], verdicts=tuple(verdicts), card=_card(data["card"]))


def as_json(examined: Iterable[Examined]) -> str:
    """Return examinations as one JSON document."""
    return json.dumps([each.as_dict() for each in examined], indent=2, ensure_ascii=False) + "\n"


def as_markdown(examined: Sequence[Examined]) -> str:
    """Return a table with a row for each case and a column for each subject, and every excuse below it."""
    cases = list(dict.fromkeys(verdict.case for each in examined for verdict in each.verdicts))
    rows = [[case, *(_cell(each, case) for each in examined)] for case in cases]
    table = _table(["case", *(each.name for each in examined)], rows)
    notes = [line for each in examined for line in _notes(each)]
    return "\n".join([*table, *(["", *notes] if notes else [])]) + "\n"


def cards_as_markdown(cards: Sequence[Card]) -> str:
    """Return a table with a row for each field of the cards."""
    names = [each.name for each in attrs.fields(Card) if each.name not in {"host", "notes", "plain"}]
    rows = [[name.replace("_", " "), *(_value(getattr(card, name)) for card in cards)] for name in names]
    return "\n".join(_table(["", *(card.host for card in cards)], rows)) + "\n"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [head, ["---"] * len(head), *rows]
    return [f"| {' | '.join(map(_on_one_line, cells))} |" for cells in lines]


def _on_one_line(text: str) -> str:
    """Return a text as it can stand in a cell."""
    return " ".join(text.split()).replace("|", "\\|")


def _card(data: Mapping[str, Any] | None) -> Card | PluginCard | None:
    if data is None:
        return None
    return PluginCard(**data) if "plugin" in data else Card(**data)


def _cell(examined: Examined, case: str) -> str:
    found = next((each for each in examined.verdicts if each.case == case), None)
    return "" if found is None else _SHORT[found.outcome]


def _notes(examined: Examined) -> list[str]:
    failed = [f"{each.case}: failed. {each.reason}" for each in examined.failures]
    excused = [f"{each.case}: excused by `{each.flag}`. {each.reason}" for each in examined.excuses]
    return [f"- {' '.join(f'{examined.name}, {line}'.split())}" for line in [*failed, *excused]]


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value).replace("_", " ")
