"""Types are named without asking them."""

from beaver_hostspecs.naming import type_name


class _Hostile(type):
    @property
    def __name__(cls):
        raise SystemExit("asked")


class _Odd(metaclass=_Hostile):
    pass


def test_type_name():
    """The name is the interpreter's, whatever the metaclass would answer."""
    assert ["int", "NoneType", "_Odd", "_Hostile"] == [type_name(value) for value in (1, None, _Odd(), _Odd)]
