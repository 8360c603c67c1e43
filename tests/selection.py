"""Which cases of a test belong to `make test-all`."""

from typing import Any

import pytest


def campaign(*cases: Any) -> list[Any]:
    """Return parameters of a test for `make test-all` only; a tuple has the values of several arguments."""
    return [pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.campaign) for case in cases]
