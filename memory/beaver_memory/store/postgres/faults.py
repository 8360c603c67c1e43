"""Errors of PostgreSQL and of the connection to it, as one category in one word."""

from beaver_memory.store.postgres.driver import driver

_BY_STATE = {
    "08": "cut_off",
    "22": "broken",
    "23": "broken",
    "25006": "standby",
    "28": "password",
    "3D": "no_database",
    "3F": "broken",
    "40": "locked",
    "42501": "no_rights",
    "42": "broken",
    "53100": "server_full",
    "53300": "busy",
    "53": "server_full",
    "55P03": "locked",
    "57014": "too_slow",
    "57P03": "starting",
    "57P04": "no_database",
    "57P05": "cut_off",
    "57": "cut_off",
    "58030": "server_full",
    "58": "server_failed",
    "XX001": "damaged",
    "XX002": "damaged",
    "XX": "server_failed",
}
"""By the whole SQLSTATE, or by its class."""

_BY_WORDS = (
    ("too many", "busy"),
    ("the database system", "starting"),
    ("password", "password"),
    ("authentication failed", "password"),
    ("no pg_hba.conf entry", "password"),
    ("role ", "password"),
    ("database ", "no_database"),
    ("remaining connection slots", "busy"),
    ("certificate", "tls"),
    ("SSL", "tls"),
)
"""By the message of libpq about a connection that was not made: it passes on no SQLSTATE."""


def category_of(error: Exception) -> str:
    """Return the category of an error of psycopg."""
    state = getattr(error, "sqlstate", None)
    if state:
        return _BY_STATE.get(state) or _BY_STATE.get(state[:2], "server_failed")
    return "cut_off" if isinstance(error, driver().OperationalError | driver().InterfaceError) else "broken"


def category_of_refusal(error: Exception) -> str:
    """Return the category of an error that occurred while a connection was made."""
    if getattr(error, "sqlstate", None):
        return category_of(error)
    text = str(error)
    if "FATAL" in text or "SSL" in text or "certificate" in text or "password" in text:
        return next((category for words, category in _BY_WORDS if words in text), "refused")
    return "wrong_address" if "invalid" in text else "refused"
