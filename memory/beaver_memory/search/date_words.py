"""Words of dates in English, German and Chinese, in small letters."""

import re
from collections.abc import Mapping
from types import MappingProxyType


def _table(first: int, *rows: str) -> Mapping[str, int]:
    """Return the number of each word; the words of a row have the same one."""
    return MappingProxyType({word: number for number, row in enumerate(rows, first) for word in row.split()})


MONTHS = _table(
    1,
    "january januar jan",
    "february februar feb",
    "march märz mar",
    "april apr",
    "may mai",
    "june juni jun",
    "july juli jul",
    "august aug",
    "september sept sep",
    "october oktober oct okt",
    "november nov",
    "december dezember dec dez",
)

WEEKDAYS = _table(
    0,
    "monday montag 一",
    "tuesday dienstag 二",
    "wednesday mittwoch 三",
    "thursday donnerstag 四",
    "friday freitag 五",
    "saturday samstag sonnabend 六",
    "sunday sonntag 日 天",
)

NUMBERS = _table(
    1,
    "a an one ein eine einem einer 一",
    "two couple zwei 二 两 兩",
    "three drei 三",
    "four vier 四",
    "five fünf 五",
    "six sechs 六",
    "seven sieben 七",
    "eight acht 八",
    "nine neun 九",
    "ten zehn 十",
    "eleven elf 十一",
    "twelve zwölf 十二",
)

DAYS = _table(
    -3,
    "大前天",
    "vorgestern 前天",
    "yesterday gestern 昨天 昨日 昨晚",
    "today tonight heute 今天 今日 今晚",
    "tomorrow morgen 明天 明日",
    "übermorgen 后天 後天",
    "大后天 大後天",
)

UNITS: Mapping[str, str] = MappingProxyType(
    {
        word: unit
        for unit, words in {
            "day": "day days tag tage tagen 天 日",
            "week": "week weeks woche wochen 周 週 星期 礼拜 禮拜",
            "weekend": "weekend weekends wochenende wochenenden",
            "month": "month months monat monate monaten 月",
            "year": "year years jahr jahre jahren 年",
        }.items()
        for word in words.split()
    }
)

_ENDINGS = ("e", "en", "es", "er", "em")
SIDES: Mapping[str, int] = MappingProxyType(
    {
        "last": -1, "past": -1, "previous": -1, "this": 0, "next": 1,
        **{stem + end: -1 for stem in ("letzt", "vorig", "vergangen") for end in _ENDINGS},
        **{"dies" + end: 0 for end in _ENDINGS},
        **{stem + end: 1 for stem in ("nächst", "kommend") for end in _ENDINGS},
    }
)  # fmt: skip
"""Words before a day or a unit, and which way they point."""

BACK: Mapping[str, int] = MappingProxyType({"vor": -1, "in": 1})
"""Words before a number of units, and which way they point."""

BEFORE_MONTHS = frozenset("in im of since seit during".split())  # noqa: SIM905 - words are read better as words

BEFORE_MORNING = frozenset("guten am heute gestern jeden".split())  # noqa: SIM905 - words, as above
"""Words after which the German "Morgen" is the morning, and not tomorrow."""

SHIFTS: Mapping[str, int] = MappingProxyType(
    {"前": -2, "上": -1, "去": -1, "这": 0, "這": 0, "本": 0, "今": 0, "下": 1, "明": 1}
)

WEEKEND = "末"

_UNIT = "周|週|星期|礼拜|禮拜|月|年"
_COUNT = r"\d{1,2}|十[一二]|[一二两兩三四五六七八九十]"
CHINESE = re.compile(
    rf"""
        (?P<day>大?前天|昨[天日晚]|今[天日晚]|明[天日]|大?[后後]天)
      | (?P<week>[上下这這本])[个個]?(?:周|週|星期|礼拜|禮拜)(?P<weekday>[一二三四五六日天末])
      | (?P<shift>[上下这這本][个個]?(?=[周週星礼禮月])|[去今明前](?=年))(?P<what>{_UNIT})
      | (?P<count>{_COUNT})[个個]?(?P<unit>天|日|{_UNIT})(?:以|之)?(?P<way>[前后後])
      | (?:(?P<year>(?:19|20)\d\d)年)?(?P<month>{_COUNT})月(?:(?P<monthday>\d{{1,2}})[日号號])?
    """,
    re.VERBOSE,
)
