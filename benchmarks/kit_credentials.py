"""The shape of a list of credentials, and how its credentials are made up. None of them was ever valid."""

import random
import string

import attrs

OPEN, CLOSE = "\u27e6", "\u27e7"
"""The marks around the credential in a text."""

WORD = string.ascii_letters + string.digits
LOWER = string.ascii_lowercase + string.digits
UPPER = string.ascii_uppercase + string.digits
HEX = "0123456789abcdef"
BASE64 = WORD + "+/"


@attrs.frozen(kw_only=True)
class Credential:
    """One kind of credential.

    Attributes:
        kind: its name.
        texts: messages or lines of code, each with one made-up credential of the kind between the marks.
        innocent: texts that look alike and have no credential.
    """

    kind: str
    texts: tuple[str, ...]
    innocent: tuple[str, ...] = ()


def made_up(seed: str, length: int, alphabet: str = WORD) -> str:
    """Return random text that is the same in every run."""
    return "".join(random.Random(seed).choices(alphabet, k=length))


def marked(credential: str) -> str:
    """Return a credential between the marks."""
    return f"{OPEN}{credential}{CLOSE}"


def plain(text: str) -> tuple[str, str]:
    """Return a text without the marks, and the credential that was between them."""
    before, _, rest = text.partition(OPEN)
    credential, _, after = rest.partition(CLOSE)
    return before + credential + after, credential


def is_gone(credential: str, redacted: str) -> bool:
    """Return whether no part of a credential that is longer than its half is left in a text."""
    size = len(credential) // 2 + 1
    return not any(credential[at : at + size] in redacted for at in range(len(credential) - size + 1))
