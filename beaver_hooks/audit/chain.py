"""The chain that binds each audit record to the one before it. Pure: no file, no clock.

Each record carries HMAC-SHA256 over the code of the record before it and its own canonical bytes, which include its
number. Without the key a program cannot change, insert, drop or reorder records undetected, with one exception:
a chain that lost its last records is still valid. To detect that, keep a `Head` somewhere else and pass it to
`verify`. A program with the key can forge everything; a head kept elsewhere detects that too.
"""

import hmac
import json
from collections.abc import Iterable
from itertools import chain as concatenate

import attrs

Fields = tuple[str, str, str | None, str | None, str | None, str | None, str]
"""The fields of a record: at, name, plugin, hook, turn, session, and the facts as JSON text."""

GENESIS = "0" * 64
"""The previous code of the first record."""

# Built once: json.dumps builds an encoder per call for anything but its defaults. Pure ASCII, so that lone
# surrogates and NUL are plain escapes.
_encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode


@attrs.frozen(kw_only=True)
class ChainedEvent:
    """One stored event: a record of the chain.

    Attributes:
        seq: its number, from 1, without gaps.
        fields: its fields.
        mac: its code, in hex.
    """

    seq: int
    fields: Fields
    mac: str


@attrs.frozen(kw_only=True)
class Head:
    """The end of a chain at one moment. Content-free: it may be kept or published anywhere."""

    seq: int
    mac: str


@attrs.frozen(kw_only=True)
class ChainCheck:
    """The result of `verify`.

    Attributes:
        ok: whether the chain is valid.
        checked: the number of valid records.
        first_bad: the number of the first record that is wrong or missing, or `None`.
        reason: its fault: `changed`, `forged` (the code of the next record does not match it either), `missing`,
            `reordered`, or `not the expected head`; empty when `ok`.
        head: the last valid record.
        lost: how many events the records themselves report as lost.
        restarts: how often the records report that an earlier trail was gone.
        missing_triggers: the triggers that should keep the table append-only, and are gone.
    """

    ok: bool
    checked: int
    first_bad: int | None = None
    reason: str = ""
    head: Head | None = None
    lost: int = 0
    restarts: int = 0
    missing_triggers: tuple[str, ...] = ()


def subkey(key: bytes, purpose: str) -> bytes:
    """Return the key for one purpose, so that a code made for one purpose reveals nothing about another."""
    return hmac.digest(key, b"beaver-hooks audit: " + purpose.encode("ascii"), "sha256")


def chain_key(key: bytes) -> bytes:
    """Return the key for `link` and `verify`."""
    return subkey(key, "chain")


def identifier_key(key: bytes) -> bytes:
    """Return the key for `identify`."""
    return subkey(key, "identifiers")


def identify(key: bytes, value: str) -> str:
    """Return the keyed hash of a value that could identify a person: the same value has the same hash per key."""
    digest = hmac.digest(key, value.encode("utf-8", "surrogatepass"), "sha256")
    return "h:" + digest.hex()[:24]


def canonical(seq: int, fields: Fields) -> bytes:
    """Return the bytes of a record that its code covers; two different records never have the same bytes."""
    return _encode([seq, *fields]).encode("ascii")


def link(key: bytes, previous: str, seq: int, fields: Fields) -> str:
    """Return the code of a record that follows the one with the code `previous`."""
    message = previous.encode("utf-8", "surrogatepass") + b"\n" + canonical(seq, fields)
    return hmac.digest(key, message, "sha256").hex()


def verify(records: Iterable[ChainedEvent], key: bytes, *, expected_head: Head | None = None) -> ChainCheck:
    """Check a whole chain and name the first bad record.

    Args:
        records: all of them, in the order of their numbers.
        key: the chain key.
        expected_head: an earlier head. Without it a chain that lost its last records passes as valid.
    """
    head = Head(seq=0, mac=GENESIS)
    current: ChainedEvent | None = None
    for following in concatenate(records, (None,)):
        if current is not None:
            reason = _fault(head, current, following, key) or _surprise(current, expected_head)
            if reason:
                return _bad(head, min(current.seq, head.seq + 1), reason)
            head = Head(seq=current.seq, mac=current.mac)
        current = following
    if expected_head is not None and expected_head.seq > head.seq:
        return _bad(head, head.seq + 1, "missing")
    return ChainCheck(ok=True, checked=head.seq, head=_found(head))


def _fault(head: Head, record: ChainedEvent, following: ChainedEvent | None, key: bytes) -> str:
    if record.seq != head.seq + 1:
        return "missing" if record.seq > head.seq else "reordered"
    if _same(link(key, head.mac, record.seq, record.fields), record.mac):
        return ""
    # If the next record's code matches this one's, this code is genuine and the fields were changed.
    if following is None or _same(link(key, record.mac, following.seq, following.fields), following.mac):
        return "changed"
    return "forged"


def _surprise(record: ChainedEvent, expected: Head | None) -> str:
    if expected is None or record.seq != expected.seq or _same(record.mac, expected.mac):
        return ""
    return "not the expected head"


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode("utf-8", "surrogatepass"), other.encode("utf-8", "surrogatepass"))


def _bad(head: Head, seq: int, reason: str) -> ChainCheck:
    return ChainCheck(ok=False, checked=head.seq, first_bad=seq, reason=reason, head=_found(head))


def _found(head: Head) -> Head | None:
    return head if head.seq else None
