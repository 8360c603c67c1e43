"""Ids of turns; the host's own ids are random and identify no person, so they may be recorded unchanged."""

import re
import secrets

_OURS = re.compile(r"turn-[0-9a-f]{24}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def new_turn_id() -> str:
    """Return a new random id."""
    return f"turn-{secrets.token_hex(12)}"


def is_ours(turn_id: str) -> bool:
    """Whether an id has the form of the host's own ids or of a UUID; any other id could identify a person."""
    return _OURS.fullmatch(turn_id) is not None
