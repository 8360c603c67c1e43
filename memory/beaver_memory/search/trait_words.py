"""Words that tell who speaks, a time, a number, a rule, and what a query asks for: English, German and Chinese."""

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType

POLITE = "sie"
"""The second word of a polite German request: `Schreiben Sie mir immer ...`."""

YEAR = re.compile(r"(?:19|20)\d\d")

_ENDS = r"\u3002\uff01\uff1f\uff1b\n.!?"
_PERSONS = "我咱他她它您你们們"

CHINESE = MappingProxyType(
    {
        "first": re.compile("[我咱俺]"),
        "time": re.compile(
            "[昨前明后後今去]天|今晚|昨晚|最近|[上下][个個]?(?:周|週|月|星期)|[去今明前]年|(?:周|週|星期)[一二三四五六日天末]"
            "|[\\d一二三四五六七八九十]+(?:年|月|日|号|號|天前|周前|週前)"
        ),
        "number": re.compile("[一二两兩三四五六七八九十百千万萬几幾][个個只隻位次年月天岁歲名家本张張条條块塊种種]"),
        # A sentence begins so; it is a request; or it has such a word and names no person by a pronoun.
        "rule": re.compile(
            rf"(?:^|[{_ENDS}])\s*(?:"
            "以后|以後|总是|總是|永远|永遠|务必|務必|一定要|不要|别|別"
            rf"|(?:请|請|[给給对對跟帮幫为為][我咱])[^{_ENDS}]*?(?:总是|總是|永远|永遠|一律|从不|從不|不要|别再|別再|只[用要能])"
            rf"|(?:[^{_ENDS}{_PERSONS}]|(?<=[给給对對跟帮幫为為替让讓叫向])[我咱])*?"
            "(?:一律|务必|務必|一定要|千万[别不]|千萬[別不]|(?:永远|永遠|绝|絕|绝对|絕對)(?:不要|别|別)|(?:总是|總是)不?要)"
            ")"
        ),
    }
)
"""What has no spaces around its words is found by patterns."""

WHEN = re.compile(
    r"\bwhen\b|\bwhat (?:date|day|time|year|month|week)\b"
    r"|\bwhich (?:date|day|year|month|week|season)\b|\bhow (?:long|recently)\b"
    r"|\bwann\b|\bwie lange\b|\b(?:welche[mnrs]?|was für ein\w*) (?:datum|tag|jahr|monat|woche|uhrzeit)\b"
    "|什么时候|什麼時候|何时|何時|哪[一]?[天年月周]|几号|幾號|几月|幾月|几点|幾點|多久|多长时间|多長時間"
)
"""Of a query in small letters, as below."""

HOW_MANY = re.compile(
    r"\bhow (?:many|much|often|old|high)\b|\bwie ?(?:viele?n?|oft|alt|hoch)\b"
    "|多少|[几幾][个個只隻位次天岁歲名家本张張条條种種]|多大"
)


@cache
def trait_words() -> Mapping[str, frozenset[str]]:
    """Return the words of `trait_words.toml`, by the trait that they show."""
    listed = tomllib.loads(files(__package__).joinpath("trait_words.toml").read_text("utf-8"))
    return {name: frozenset(words.split()) for name, words in listed.items()}
