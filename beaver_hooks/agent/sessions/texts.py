"""Encoding of texts and ids for the database, and selection of the messages that a turn stores. Pure."""

import secrets
import unicodedata
from collections.abc import Sequence

from beaver_hooks.agent.errors import SessionError
from beaver_hostspecs import Message, scrub
from beaver_toolkit.redaction.redactor import Redactor

LONGEST_ID = 512
LONGEST_TITLE = 80


def encode(text: str) -> bytes:
    """Return any text as bytes from which `decode` makes the same text."""
    return text.encode("utf-8", "surrogatepass")


def decode(stored: bytes) -> str:
    """Return the encoded text. Bytes that `encode` did not make become visible escapes."""
    try:
        return stored.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return stored.decode("utf-8", "backslashreplace")


def optional_encode(text: str | None) -> bytes | None:
    """Return `encode(text)`, or `None` for `None`."""
    return None if text is None else encode(text)


def optional_decode(stored: bytes | None) -> str | None:
    """Return `decode(stored)`, or `None` for `None`."""
    return None if stored is None else decode(stored)


def checked_id(given: str, what: str = "session") -> str:
    """Return an id of a session or a user unchanged.

    Raises:
        SessionError: it is no text, empty, too long, or contains characters that are unsafe for a terminal.
    """
    if isinstance(given, str) and 0 < len(given) <= LONGEST_ID and not any(map(_unprintable, given)):
        return given
    raise SessionError(
        f"A {what} id is a text of 1 to {LONGEST_ID} characters without control characters; use another one."
    )


def new_session_id() -> str:
    """Return a new random id."""
    return f"session-{secrets.token_hex(12)}"


def kept(messages: Sequence[Message]) -> list[Message]:
    """Return the messages of a turn that stay visible: the user's, and the last answer of the model."""
    answers = [at for at, message in enumerate(messages) if message.role == "assistant"]
    return [message for at, message in enumerate(messages) if message.role == "user" or at in answers[-1:]]


def stored_text(text: str) -> str:
    """Return the text of a message as it is stored: without secrets of this process, and those that rules recognise."""
    return searchable(scrub(text))


def searchable(text: str) -> str:
    """Return the text of a message as search and lists may show it: without secrets."""
    return Redactor().redact(text).text


def opening(messages: Sequence[Message]) -> str | None:
    """Return the first words of the first prompt with words, as a title."""
    titles = (title_of(searchable(scrub(message.text))) for message in messages if message.role == "user")
    return next(filter(None, titles), None)


def given_title(title: str | None) -> str | None:
    """Return a title that a user gave, without secrets; `None` for an empty one."""
    return title_of(searchable(scrub(title or ""))) or None


def title_of(text: str) -> str:
    """Return the first words of a text on one line that is safe for a terminal."""
    # A slice before the split: a text may be a megabyte of spaces.
    line = " ".join(text[: 20 * LONGEST_TITLE].split())
    shown = "".join("\ufffd" if _unprintable(character) else character for character in line[: LONGEST_TITLE + 1])
    return shown if len(shown) <= LONGEST_TITLE else shown[: LONGEST_TITLE - 1] + "\u2026"


def _unprintable(character: str) -> bool:
    return unicodedata.category(character) in {"Cc", "Cs"}
