"""Encodes a report as plain JSON data."""

from datetime import datetime
from typing import Any, cast

import cattrs

_CONVERTER = cattrs.Converter()
_CONVERTER.register_unstructure_hook(datetime, datetime.isoformat)


def encode(report: object) -> dict[str, Any]:
    """Return the fields of a report, by the names of its class; moments are ISO texts."""
    return cast("dict[str, Any]", _CONVERTER.unstructure(report))
