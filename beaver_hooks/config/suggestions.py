"""Suggests known words for a mistyped one: "did you mean ...?"."""

from collections.abc import Iterable

_LONGEST = 64


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return a parenthesis that names the closest known word, or an empty text if none is close."""
    # Imported late, as a configuration without a typo does not need it.
    from difflib import get_close_matches  # noqa: PLC0415

    if len(word) > _LONGEST:
        return ""  # the comparison takes quadratic time, and so long a word is no typo
    by_folded = {name.casefold(): name for name in known}
    closest = get_close_matches(word.casefold(), by_folded, n=1)
    return f" (did you mean `{by_folded[closest[0]]}`?)" if closest else ""


def meant_or_known(word: str, known: Iterable[str], noun: str) -> str:
    """Return a parenthesis that names the closest known word, or a list of all known words when none is close."""
    names = list(known)
    listed = ", ".join(f"`{name}`" for name in names)
    return did_you_mean(word, names) or (f"; the {noun} are {listed}" if names else "")
