"""Tells the language of a text by words and endings of `languages.toml`. Pure, after the file is read."""

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

_CHINESE = re.compile(r"[\u3400-\u9fff]")


def language_of(text: str) -> str:
    """Return the language of a text: `zh`, `de` or `en`."""
    if _CHINESE.search(text):
        return "zh"
    german = _count("de", text)
    return "de" if german and german > _count("en", text) else "en"


def _count(language: str, text: str) -> int:
    return sum(len(each.findall(text)) for each in _marks()[language])


@cache
def _marks() -> Mapping[str, tuple[re.Pattern[str], ...]]:
    given = tomllib.loads(files(__package__).joinpath("languages.toml").read_text("utf-8"))
    return {
        name: (
            re.compile(rf"{_letters(each['letters'])}\b(?:{'|'.join(each['words'].split())})\b", re.IGNORECASE),
            re.compile(rf"\b(?:{'|'.join(each['endings']) or '(?!)'})\b"),
        )
        for name, each in given.items()
    }


def _letters(letters: str) -> str:
    return f"[{letters}]|" if letters else ""
