"""Converts texts, lists and moments to and from their stored form."""

import json
import re
import unicodedata
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

_NO_TEXT = re.compile("[\0\ud800-\udfff]")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_FIRST = datetime.min.replace(tzinfo=UTC)
_LAST = datetime.max.replace(tzinfo=UTC)
EARLIEST = (_FIRST - _EPOCH) // _MICROSECOND
LATEST = (_LAST - _EPOCH) // _MICROSECOND


def is_clean(text: str) -> bool:
    """Return whether a quick check shows that every database can hold a text; for most texts it does."""
    return text.isascii() and "\0" not in text


def cleaned(text: str) -> str:
    """Return a text that every database can hold: NUL and lone surrogates become U+FFFD."""
    return text if is_clean(text) else _NO_TEXT.sub("\ufffd", text)


def cleaned_all(texts: Iterable[str]) -> tuple[str, ...]:
    """Return cleaned texts."""
    return tuple(map(cleaned, texts))


def packed(texts: Iterable[str]) -> str:
    """Return a list as JSON, cleaned."""
    given = cleaned_all(texts) if texts else ()
    return json.dumps(given, ensure_ascii=False, separators=(",", ":")) if given else "[]"


def unpacked(text: str) -> tuple[str, ...]:
    """Return the list that `packed` has packed."""
    return () if text == "[]" else tuple(json.loads(text))


def micros(moment: datetime) -> int:
    """Return microseconds since the epoch, within the years that a `datetime` in UTC can show."""
    since = moment - _EPOCH
    # The same result as a division by a microsecond, in a third of the time.
    value = (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
    return min(max(value, EARLIEST), LATEST)


def micros_or_none(moment: datetime | None) -> int | None:
    """Return microseconds since the epoch, if there is a moment."""
    return None if moment is None else micros(moment)


def moment(value: int) -> datetime:
    """Return the moment of `micros`."""
    return _EPOCH + timedelta(0, 0, value)


def moment_or_none(value: int | None) -> datetime | None:
    """Return the moment of `micros`, if there is one."""
    return None if value is None else moment(value)


def seconds(value: int | None, otherwise: float) -> float:
    """Return seconds since the epoch."""
    return otherwise if value is None else value / 1_000_000


def folded(text: str) -> str:
    """Return a text without case, accents and compatibility forms."""
    if text.isascii():
        return text.lower()
    return plain(text.casefold())


def plain(text: str) -> str:
    """Return a text without accents and compatibility forms."""
    parts = unicodedata.normalize("NFKD", text)
    return "".join(each for each in parts if not unicodedata.combining(each))
