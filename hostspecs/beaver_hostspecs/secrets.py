"""`Secret`: a credential that only `reveal` shows."""

from typing import NoReturn, Self

from beaver_hostspecs.scrubbing import SCRUBBER


class Secret:
    """Wraps a credential.

    `str`, `repr`, formatting, pickling, copying and `attrs.asdict` never show it; only `reveal()` does.
    Every secret of at least eight characters is masked from then on in everything that Beaver Hooks writes.
    """

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        if not isinstance(value, str):
            raise TypeError(f"a Secret wraps a str, not {type(value).__name__}")
        self._value = value
        SCRUBBER.remember(value)

    def reveal(self) -> str:
        """Return the credential itself, for the one call that needs it."""
        return self._value

    def __bool__(self) -> bool:
        return bool(self._value)

    def __repr__(self) -> str:
        return "Secret(...)"

    __str__ = __repr__

    def __format__(self, format_spec: str) -> str:
        return repr(self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        # Imported late: it brings OpenSSL, and comparing secrets is rare.
        import hmac  # noqa: PLC0415

        mine, theirs = (each._value.encode("utf-8", "surrogatepass") for each in (self, other))  # noqa: SLF001
        return hmac.compare_digest(mine, theirs)

    def __hash__(self) -> int:
        return hash((Secret, self._value))

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        # `dataclasses.asdict` copies deeply; the copy hides its value as the original does.
        return self

    def __getstate__(self) -> NoReturn:
        # Without it, `object` returns the value of the slot.
        self.__reduce__()

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Secret cannot be pickled; hand over the name of its environment variable instead")
