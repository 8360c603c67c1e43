"""Lists of credentials in `credentials/`, one kind of credential per line. None of them was ever valid."""

import sys
from pathlib import Path

import attrs

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "tests"))

from case_files import cases, unbroken  # noqa: E402 - found by the path above

OPEN, CLOSE = "\u27e6", "\u27e7"
"""The marks around the credential in a text."""


def _unbroken(texts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(unbroken, texts))


@attrs.frozen(kw_only=True)
class Credential:
    """One kind of credential.

    Attributes:
        kind: its name.
        texts: messages or lines of code, each with one made-up credential of the kind between the marks.
        innocent: texts that look alike and have no credential.
    """

    kind: str
    texts: tuple[str, ...] = attrs.field(converter=_unbroken)
    innocent: tuple[str, ...] = ()


def credentials(name: str) -> tuple[Credential, ...]:
    """Return a list of credentials."""
    return cases(Path(__file__).parent / "credentials" / f"{name}.jsonl", Credential)


def plain(text: str) -> tuple[str, str]:
    """Return a text without the marks, and the credential that was between them."""
    before, _, rest = text.partition(OPEN)
    credential, _, after = rest.partition(CLOSE)
    return before + credential + after, credential


def is_gone(credential: str, redacted: str) -> bool:
    """Return whether no part of a credential that is longer than its half is left in a text."""
    size = len(credential) // 2 + 1
    return not any(credential[at : at + size] in redacted for at in range(len(credential) - size + 1))
