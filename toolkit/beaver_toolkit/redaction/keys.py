"""Keys and tokens that their own shape tells, without a name beside them or a mark of a vendor."""

import re

from beaver_toolkit.redaction.randomness import is_random, is_varied
from beaver_toolkit.redaction.rules import LEFT, MIXED, Rule
from beaver_toolkit.redaction.values import is_digest

_PEM = r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_PEM_END = r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_LINE_END = r"(?:\s|\\[nrt]|[\"'+,>|\\])"
_BODY = re.compile(rb"[A-Za-z0-9+/=]{16}")
_AFTER_BEGIN = 40
_BROKEN = 26
"""Letters and digits of a random text that may have hyphens and underscores in it."""

_LEVELS = (b"live", b"test", b"prod", b"secret", b"sk", b"key", b"pat")
_OBJECTS = frozenset(
    b"chatcmpl cmpl req request resp response msg message run thread asst file batch call toolu tool org "
    b"org user usr proj prj project pi pm ch cus price prod product sub in evt event team srv dep dpl acct "
    b"account seti cs si txn ord order inv session sess conv wf job task step trace span item doc node "
    b"page img app site build rel release deploy vpc subnet i sg ami eni vol snap rtb igw acl lt tgw fp "
    b"ftjob vs step chunk client conn db env".split()
)
"""Nouns with which vendors begin the ids of their objects; an id is no secret."""

_ID = r"(?i)(?:\bid|_id|[a-z](?-i:Id|ID))\b[\s\"'=:]{1,6}$"
_ENCODED_LINE = r"(?:[A-Za-z0-9+/]{60,}|-----)(?:\r?\n|\\n)$"


def _has_key(text: bytes) -> bool:
    """Return whether there is more than the first line of a key."""
    return _BODY.search(text, _AFTER_BEGIN) is not None


def _is_marked(text: bytes) -> bool:
    """Return whether a random text follows some mark such as `acme_live_`."""
    mark, _, rest = text.partition(b"_" if b"_" in text else b"-")
    if mark.lower() in _OBJECTS and not rest.startswith(_LEVELS):
        return False
    return is_random(max(re.split(rb"[_-]", text), key=len)) and not is_digest(text)


def _is_broken(text: bytes) -> bool:
    """Return whether a random text with hyphens and underscores in it follows a mark; no name in code has its cases."""
    mark, *rest = re.split(rb"[~._-]", text)
    body = b"".join(rest)
    if len(body) < _BROKEN or body.lower() == body or mark in _OBJECTS or (b"~" not in text and is_digest(text)):
        return False
    return is_random(body)


def _is_aws_secret(text: bytes) -> bool:
    return is_random(text) and text.lower() != text


def _is_mixed_case(text: bytes) -> bool:
    """Return whether a text without a name or a mark is random, and no digest."""
    bare = text[2:] if text[:2].isupper() else text
    return is_random(text) and not bare.islower() and not bare.isupper()


RULES = (
    Rule(
        kind="private key",
        hints=(_PEM,),
        pattern=rf"{_PEM}(?:(?:[^-]|-[^-])*{_PEM_END}|{_LINE_END}*(?:[A-Za-z0-9+/=]{{16,}}{_LINE_END}*)+)",
        check=_has_key,
    ),
    Rule(kind="private key", pattern=r"Private-Lines: \d+\s+((?:[A-Za-z0-9+/=]{8,}\s*)+)"),
    Rule(
        kind="web token",
        pattern=r"eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*){0,3}",
        hints=("eyJ",),
    ),
    Rule(kind="docker credentials", pattern=r"eyJhdXRo[A-Za-z0-9+/=]{20,}", hints=("eyJ",)),
    Rule(
        kind="telegram token",
        pattern=LEFT + r"(?:bot)?(\d{7,12}(?::|%3A)[A-Za-z0-9_-]{30,})",
        hints=(r"\d(?::|%3A)[A-Za-z_-]",),
    ),
    Rule(
        kind="discord token",
        pattern=r"\b([MNO][A-Za-z0-9_-]{22,28}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,})",
        hints=(r"\.[A-Za-z0-9_-]{6}\.", MIXED),
    ),
    Rule(kind="azure secret", pattern=r"([A-Za-z0-9_~.-]{3}[78]Q~[A-Za-z0-9_~.-]{31,34})", hints=("[78]Q~",)),
    Rule(
        kind="mailgun key",
        pattern=r"\b([0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8})\b",
        hints=(r"[0-9a-f]-[0-9a-f]{8}-[0-9a-f]",),
    ),
    Rule(kind="mailchimp key", pattern=r"\b([0-9a-f]{32}-us\d{1,2})\b", hints=(r"[0-9a-f]{8}-us\d",)),
    Rule(
        kind="ethereum key",
        pattern=r"\b0x[0-9A-Fa-f]{64}\b",
        before=r"(?i)private|priv|wallet|signer|deployer|eth",
    ),
    Rule(
        kind="ethereum key",
        pattern=r"(?i)\baccounts[\"']?\s{0,2}[:=]\s{0,2}\[\s{0,4}[\"'](?:0x)?([0-9a-f]{64})[\"']",
        hints=(r"(?i)accounts[\"']?\s{0,2}[:=]\s{0,2}\[",),
    ),
    Rule(
        kind="bitcoin key",
        pattern=r"\b([5KL][1-9A-HJ-NP-Za-km-z]{50,51})\b",
        hints=(MIXED, r"\b[5KL][1-9A-HJ-NP-Za-km-z]{16}"),
        check=is_random,
    ),
    Rule(
        kind="password hash",
        pattern=r"\$(?:2[aby]|[156y]|apr1|argon2i?d?|scrypt)\$[A-Za-z0-9./$=,+-]{20,}|\{SSHA\d*\}[A-Za-z0-9+/=]{20,}",
    ),
    Rule(
        kind="aws secret key",
        pattern=r"(?:^|[^A-Za-z0-9/+])([A-Za-z0-9/+]{40})(?:[^A-Za-z0-9/+=]|$)",
        hints=(r"A[KS]IA[A-Z0-9]|(?i:aws|secret_?access|\bs3\b)", MIXED),
        check=_is_aws_secret,
        rank=1,
    ),
    Rule(
        kind="token",
        pattern=LEFT + r"((?:[A-Za-z][A-Za-z0-9]{0,15}[_-]){1,4}[A-Za-z0-9]{20,})\b",
        hints=(MIXED, r"[_-][A-Za-z0-9]{20}"),
        unless=_ID,
        check=_is_marked,
        rank=3,
    ),
    Rule(
        kind="token",
        pattern=LEFT + rf"([a-z][a-z0-9]{{1,10}}[_~-][A-Za-z0-9_-]*(?:{MIXED})[A-Za-z0-9_-]{{8,}})\b"
        r"|\b([a-z][a-z0-9]{1,8}[.-][A-Z0-9]{6,}[.-]"
        r"[A-Z0-9]{20,})\b",
        hints=(MIXED, r"[_~.-]\w{8}"),
        unless=_ID,
        check=_is_broken,
        rank=3,
    ),
    Rule(kind="nostr key", pattern=r"\bnsec1[02-9ac-hj-np-z]{50,}", hints=("nsec1",)),
    Rule(
        kind="private key",
        pattern=r"[\"'](?:d|k)[\"']\s?:\s?[\"']([A-Za-z0-9_-]{40,})[\"']",
        hints=(r"[\"']kty[\"']",),
        check=is_varied,
    ),
    Rule(
        kind="token",
        pattern=r"(?:^|[^A-Za-z0-9/+=_.\\-]|\\[nrt])([A-Za-z0-9]{32,100})(?:[^A-Za-z0-9/+=_.-]|\.?\s|\.?$)",
        hints=(MIXED, r"[A-Za-z0-9]{32}"),
        unless=rf"{_ID}|{_ENCODED_LINE}|\b(?:ssh-[a-z0-9]+|ecdsa-[a-z0-9-]+) $",
        check=_is_mixed_case,
        rank=4,
    ),
)  # fmt: skip
