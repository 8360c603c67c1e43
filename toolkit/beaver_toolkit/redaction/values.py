"""Tells the values of passwords and keys from code, placeholders and remarks. Pure."""

import re

from beaver_toolkit.redaction.randomness import is_random, is_varied

SHORTEST = 4
"""Characters of the shortest password."""

_AROUND = b" \t\"'`,;:.!?)]}>"
_PLACEHOLDERS = frozenset(
    b"string none null true false required optional example token anonymous username user changeme change-me redacted "
    b"hidden empty default undefined missing unknown invalid incorrect wrong bytes bool object text value self prompt "
    b"stdin word protected function lambda getpass guest secret admin root demo dummy sample private public base64 "
    b"sha256 sha512 bcrypt argon2 pbkdf2 utf-8 utf8 ascii latin1 host hostname hunter email basic bearer plain "
    b"latin-1 test password passwort passwd".split()
)  # fmt: skip
_NO_PASSWORD = re.compile(
    rb"""(?:.*\ .*                                                    # a sentence
    |(?i:[a-z_-]*(?:pass(?:word|wd|phrase|code|wort)|kennwort|pwd|secret|token|[_-]key|[_-]pw|[_-]pass)[a-z_-]{0,4}\d{0,3})
    |[A-Za-z_][\w-]*(?:[.\[(]|::|->|=).*                           # a name and what is done with it
    |[$%{<\[(*&|\\].*|[.?-]+\S*|/[\w/.-]+|\S*[\\{}()<>]\S*
    |[A-Za-z][a-z]*|[a-z]+(?:_[a-z]+)*|[a-z]+(?:-[a-z]+){1,2}|[A-Z]+(?:[_-][A-Z]+)*|[a-z]+(?:[A-Z][a-z]+)+|[\d.,:/_-]+%?
    |[xX*.\#_?-]+|\xe2\x80\xa6)""",
    re.VERBOSE | re.DOTALL,
)
_PLAIN = re.compile(rb"[A-Za-z]?[a-z]+")
_REMARKS = frozenset(
    b"that this what when where which required needed stored saved kept sent used given empty missing wrong "
    b"right incorrect correct invalid valid hashed encrypted changed expired reset weak strong long short "
    b"enough never always also only just still very case protected known unknown secret safe secure hidden "
    b"visible optional mandatory the your from with than then there here being been into about same different "
    b"shared good unique random anything something nothing simple complex easy hard based read asked entered "
    b"typed checked verified compared obvious important private public fine great okay perfect difficult "
    b"important essential critical crucial common necessary nicht noch auch immer falsch richtig sicher geheim "
    b"lang kurz abgelaufen gespeichert vergessen bekannt notwendig erforderlich leer diese dieser dies mein "
    b"dein unser eine einer einem einen stark schwach wichtig".split()
)  # fmt: skip
_PARTICIPLE = re.compile(rb"(?i).*(?:ed|ing|able|ible|ly|ent|ung|lich|bar|ert)")
_LINK = (b"http://", b"https://", b"/", b"$", b"./", b"sha", b"urn:", b"0x", b"arn:")
_NAME = re.compile(rb"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+|\w*[\[(].*")


def is_password(value: bytes) -> bool:
    """Return whether the value of a field for passwords is one, and neither code nor a placeholder."""
    bare = value.strip(_AROUND)
    return len(bare) >= SHORTEST and bare.lower() not in _PLACEHOLDERS and _NO_PASSWORD.fullmatch(bare) is None


def is_quoted_word(word: bytes) -> bool:
    """Return whether the quoted ordinary word of a field for passwords is one."""
    word = word.lower()
    if word in _PLACEHOLDERS or word in _REMARKS or _PARTICIPLE.fullmatch(word) is not None:
        return False
    return not any(name in word for name in (b"pass", b"kennwort", b"pwd", b"secret", b"token", b"key"))


def is_said(value: bytes) -> bool:
    """Return whether the word after "the password is" is the password, and no remark about it."""
    bare = value.strip(_AROUND)
    return _PLAIN.fullmatch(bare) is None and is_password(bare)


def is_said_with_digit(value: bytes) -> bool:
    """Return whether the word after "password" is one: it has a digit and a letter."""
    return is_said(value) and re.search(rb"\d", value) is not None and re.search(rb"[A-Za-z]", value) is not None


def is_said_of_mine(value: bytes) -> bool:
    """Return whether the word after "my password is" is the password; it may be an ordinary word."""
    bare = value.strip(_AROUND)
    if _PLAIN.fullmatch(bare):
        word = bare.lower()
        return len(word) >= 5 and word not in _REMARKS and _PARTICIPLE.fullmatch(word) is None  # noqa: PLR2004 - as above
    return is_password(bare)


def is_said_in_chinese(value: bytes) -> bool:
    """Return whether the plain characters after the Chinese word for a password are one."""
    bare = value.strip(_AROUND).lower()
    if len(bare) < SHORTEST or bare in _PLACEHOLDERS or bare in _REMARKS:
        return False
    return bare.isalpha() or is_password(bare)


def is_named_secret(value: bytes) -> bool:
    """Return whether the value of a field for secrets is one."""
    return is_varied(value) and not value.startswith(_LINK) and (_NAME.fullmatch(value) is None or is_random(value))


_DIGEST = re.compile(rb"(?i)(?:.*[_-])?[0-9a-f]+|(?:sha|md5|blake|crc|uuid|commit|rev|digest|hash|etag|integrity).*")


def is_digest(value: bytes) -> bool:
    """Return whether a text may be the digest of something, which is no secret."""
    return _DIGEST.fullmatch(value) is not None
