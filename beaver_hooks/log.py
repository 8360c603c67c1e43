"""The host's log: structlog events with flat fields, over the standard logger `beaver_hooks`.

Importing the package installs no handler and configures nothing: an application that has set up `logging` gets the
host's lines in its own format, one that has not sees warnings on stderr, as with any library.
"""

import logging
from collections.abc import MutableMapping
from typing import Any

import structlog

from beaver_hostspecs import scrub
from beaver_hostspecs.naming import type_name

LOGGER_NAME = "beaver_hooks"

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
"""The levels of the log's methods. A record below the level of the logger is dropped before its fields are made."""


class Log(structlog.stdlib.BoundLogger):
    """Logs events. An error in a handler of the application does not reach the code that logs.

    Its methods return `None`, or the type name of the handler's error, for the host's health.
    """

    def _proxy_to_logger(self, method_name: str, event: str | None = None, *event_args: str, **event_kw: Any) -> Any:
        if not self._logger.isEnabledFor(LEVELS[method_name]):
            return None
        try:
            return super()._proxy_to_logger(method_name, event, *event_args, **event_kw)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - a handler may be foreign code
            return type_name(error)


def make_log(name: str = LOGGER_NAME) -> Log:
    """Return a log that writes to the standard logger `name`; event names get the package's name as a prefix."""
    log: Log = structlog.wrap_logger(
        logging.getLogger(name),
        processors=[
            _scrubbed,
            structlog.processors.LogfmtRenderer(key_order=["event"], drop_missing=True),
        ],
        wrapper_class=Log,
    )
    return log


def _scrubbed(_: object, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Mask secrets in every field, and prefix the event's name: `beaver_hooks.thing_happened`."""
    fields = {key: _plain(value) for key, value in event.items() if value is not None}
    fields["event"] = f"{LOGGER_NAME}.{fields['event']}"
    return fields


def _plain(value: object) -> object:
    """Return a value as the text of one field: a list becomes its items with commas between."""
    if isinstance(value, list | tuple):
        return ",".join(str(_plain_one(each)) for each in value)
    return _plain_one(value)


def _plain_one(value: object) -> object:
    if isinstance(value, bool | int | float):
        return value
    text = scrub(value if isinstance(value, str) else type_name(value))
    # Terminals obey control characters, and a lone surrogate would make the handler fail while it encodes.
    return "".join(each if each.isprintable() else "?" for each in text)
