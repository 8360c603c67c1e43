"""Resolves the dates in a text: "last Friday", "vor zwei Wochen", "上周五" or "7 May 2023". Pure.

A memory says "yesterday", and a question names the day. So a memory has a term for each date in its text, as seen from
the day on which it was made, and a query has one, too. A date is written as in ISO 8601: `2023-05-07` for a day,
`2023-W18` for a week, `2023-05` for a month, `2023` for a year. The words are those of `date_words.py`.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from re import Match
from types import MappingProxyType

from beaver_memory.search.date_words import (
    BACK,
    BEFORE_MONTHS,
    BEFORE_MORNING,
    CHINESE,
    DAYS,
    MONTHS,
    NUMBERS,
    SHIFTS,
    SIDES,
    UNITS,
    WEEKDAYS,
    WEEKEND,
)

MOST = 16
"""The dates of one text that are read."""

_MARK = 0xDA7E
"""The first 16 bits of the term of a date."""

_REST = (1 << 48) - 1

_SATURDAY = 5
_SIGNS = " \t\n,;:!?\"'()[]{}*_`~<>|\u2026\u201c\u201d\u201e\u2018\u2019"
_MONTHDAY = re.compile(r"(\d{1,2})(?:st|nd|rd|th|\.)?")
_YEAR = re.compile(r"(?:19|20)\d\d")
_ISO = re.compile(r"((?:19|20)\d\d)-(\d\d)-(\d\d)")
_DOTTED = re.compile(r"(\d\d?)\.(\d\d?)\.((?:19|20)\d\d)")


def dates_of(text: str, today: date) -> list[str]:
    """Return the dates that a text names, each once; `today` is the day from which "yesterday" is seen."""
    found: dict[str, None] = {}
    for each in (*_of_words(text.lower().split(), today), *(() if text.isascii() else _of_chinese(text, today))):
        found[each] = None
        if len(found) >= MOST:
            break
    return list(found)


def around(found: str) -> tuple[str, ...]:
    """Return a date with the week and the month that it is in."""
    if "W" in found:
        thursday = date.fromisocalendar(int(found[:4]), int(found[6:]), 4)
        return found, _month(thursday.year, thursday.month)
    if len(found) < len("2023-05-07"):
        return (found,)
    day = date.fromisoformat(found)
    return found, _week(day), _month(day.year, day.month)


def as_date(term: int) -> int:
    """Return the hash of a date as a term that `is_date`."""
    return _MARK << 48 | term & _REST


def is_date(term: int) -> bool:
    """Return whether a term is that of a date, and not of a word but for one of 65,536 words."""
    return term >> 48 == _MARK


# --- Words with spaces between them ---------------------------------------------------------------------------------


def _of_words(pieces: Sequence[str], today: date) -> Iterator[str]:
    words = [piece.strip(_SIGNS) for piece in pieces]
    bare = [word.rstrip(".") for word in words]
    for place, word in enumerate(bare):
        read = _READERS.get(word) or (_numeric if word[:1].isdecimal() and len(word) >= len("2023") else None)
        if read is not None:
            # Something may look like a date and be none, such as the 31st of June.
            try:
                yield from read(_Words(words, bare, place), today)
            except (ValueError, OverflowError):
                continue


class _Words:
    """A word of a text, with those beside it."""

    def __init__(self, words: Sequence[str], bare: Sequence[str], place: int) -> None:
        self._words, self._bare, self._place = words, bare, place
        self.word = bare[place]

    def at(self, step: int) -> str:
        """Return a word beside this one, without a point behind it; an empty text beyond the ends."""
        place = self._place + step
        return self._bare[place] if 0 <= place < len(self._bare) else ""

    def monthday(self, step: int) -> int:
        """Return the number of a day beside this word, or 0."""
        found = _MONTHDAY.fullmatch(self.at(step))
        return int(found[1]) if found else 0

    def year(self, step: int) -> int:
        """Return the year beside this word, or 0."""
        return int(self.at(step)) if _YEAR.fullmatch(self.at(step)) else 0

    @property
    def ends(self) -> bool:
        """Whether a sentence ends with this word."""
        return self._words[self._place].endswith(".") and len(self.word) > len("sept")


def _day(at: _Words, today: date) -> Iterator[str]:
    """Yield what "yesterday" and its like mean."""
    if at.word == "morgen" and at.at(-1) in BEFORE_MORNING:
        return
    twice = (at.at(-2), at.at(-1)) in (("day", "before"), ("day", "after"))
    yield _iso(today + timedelta(DAYS[at.word] * (2 if twice else 1)))


def _night(at: _Words, today: date) -> Iterator[str]:
    """Yield what "last night" and "this morning" mean."""
    if at.at(-1) in {"last", "this"}:
        yield _iso(today - timedelta(at.at(-1) == "last"))


def _weekday(at: _Words, today: date) -> Iterator[str]:
    """Yield the last such day before today, the first one after it, or the one in this week."""
    side, wanted = SIDES.get(at.at(-1)), WEEKDAYS[at.word]
    if side is not None:
        back, ahead = (today.weekday() - wanted - 1) % 7 + 1, (wanted - today.weekday() - 1) % 7 + 1
        yield _iso(today + timedelta((wanted - today.weekday(), ahead, -back)[side]))


def _unit(at: _Words, today: date) -> Iterator[str]:
    """Yield what "last week", "two weeks ago" and "vor zwei Wochen" mean."""
    unit, side = UNITS[at.word], SIDES.get(at.at(-1))
    if side is not None:
        if unit != "day":
            yield from _moved(today, side, unit)
        return
    place = -2 if at.at(-1) == "of" else -1
    count, sign = _number(at.at(place)), -1 if at.at(1) == "ago" else BACK.get(at.at(place - 1), 0)
    if count and sign:
        yield from _moved(today, sign * count, unit)


def _in_month(at: _Words, today: date) -> Iterator[str]:
    """Yield what "7 May 2023", "May 7", "7th of May", "in May" and "last May" mean."""
    month = MONTHS[at.word]
    before = at.monthday(-2 if at.at(-1) == "of" else -1)
    after = 0 if at.ends or before else at.monthday(1)
    year = 0 if at.ends else at.year(2 if after else 1)
    if before or after:
        day = before or after
        yield _iso(date(year, month, day) if year else _nearest(today, month, day))
    elif year:
        yield _month(year, month)
    elif at.at(-1) in SIDES:
        side = SIDES[at.at(-1)]
        here = month < today.month if side < 0 else month > today.month
        yield _month(today.year + (0 if here else side), month)
    elif at.at(-1) in BEFORE_MONTHS:
        yield _month(_nearest(today, month).year, month)


def _numeric(at: _Words, _: date) -> Iterator[str]:
    """Yield what "2023-05-07", "07.05.2023" and "2023" mean; a year behind a month belongs to that one."""
    if found := _ISO.fullmatch(at.word):
        yield _iso(date(int(found[1]), int(found[2]), int(found[3])))
    elif found := _DOTTED.fullmatch(at.word):
        yield _iso(date(int(found[3]), int(found[2]), int(found[1])))
    elif at.year(0) and at.at(-1) not in MONTHS and at.at(-2) not in MONTHS:
        yield at.word


_READERS: Mapping[str, Callable[[_Words, date], Iterator[str]]] = MappingProxyType(
    {
        **dict.fromkeys(UNITS, _unit),
        **dict.fromkeys(WEEKDAYS, _weekday),
        **dict.fromkeys(MONTHS, _in_month),
        **dict.fromkeys(DAYS, _day),
        **dict.fromkeys(("night", "morning"), _night),
    }
)


# --- Chinese --------------------------------------------------------------------------------------------------------


def _of_chinese(text: str, today: date) -> Iterator[str]:
    for match in CHINESE.finditer(text):
        try:
            yield from _chinese(match, today)
        except (ValueError, OverflowError):
            continue


def _chinese(match: Match[str], today: date) -> Iterator[str]:
    if match["day"]:
        yield _iso(today + timedelta(DAYS[match["day"]]))
    elif match["week"]:
        monday = today + timedelta(7 * SHIFTS[match["week"]] - today.weekday())
        if match["weekday"] == WEEKEND:
            yield from _weekend(monday, 0)
        else:
            yield _iso(monday + timedelta(WEEKDAYS[match["weekday"]]))
    elif match["shift"]:
        yield from _moved(today, SHIFTS[match["shift"][0]], UNITS[match["what"]])
    elif match["count"]:
        yield from _moved(today, (-1 if match["way"] == "前" else 1) * _number(match["count"]), UNITS[match["unit"]])
    else:
        year, month, day = (_number(match[name] or "") for name in ("year", "month", "monthday"))
        if day:
            yield _iso(date(year, month, day) if year else _nearest(today, month, day))
        else:
            yield _month(year or _nearest(today, month).year, month)


# --- The calendar ---------------------------------------------------------------------------------------------------


def _iso(day: date) -> str:
    return day.isoformat()


def _week(day: date) -> str:
    year, week, _ = day.isocalendar()
    return f"{year:04}-W{week:02}"


def _month(year: int, month: int) -> str:
    """Return a month, which may lie before the first or behind the last one of the year."""
    return f"{date(year + (month - 1) // 12, (month - 1) % 12 + 1, 1):%Y-%m}"


def _weekend(day: date, weeks: int) -> tuple[str, ...]:
    """Return the days of the weekend in the week of a day, or some weeks from it."""
    saturday = day + timedelta(7 * weeks + _SATURDAY - day.weekday())
    return _iso(saturday), _iso(saturday + timedelta(1))


def _moved(day: date, count: int, unit: str) -> tuple[str, ...]:
    """Return the day, week, weekend, month or year that is some of these away from a day."""
    if unit == "weekend":
        return _weekend(day, count)
    if unit == "month":
        return (_month(day.year, day.month + count),)
    if unit == "year":
        return (f"{date(day.year + count, 1, 1):%Y}",)
    return (_iso(day + timedelta(count)) if unit == "day" else _week(day + timedelta(7 * count)),)


def _nearest(today: date, month: int, day: int = 15) -> date:
    """Return that day of a month in the year in which it is nearest to today."""
    years = (today.year - 1, today.year, today.year + 1)
    return min((date(year, month, day) for year in years), key=lambda each: abs(each - today))


def _number(written: str) -> int:
    """Return a number, or 0."""
    return int(written) if written.isdecimal() and len(written) <= len("2023") else NUMBERS.get(written, 0)
