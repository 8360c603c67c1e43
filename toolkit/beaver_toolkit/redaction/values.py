"""Tells the values of passwords and keys from code, placeholders and remarks. Pure."""

import re

from beaver_toolkit.redaction.randomness import is_random, is_varied

SHORTEST = 4
"""Characters of the shortest password."""

MIXED_WORD = 6
"""Characters of the shortest word with a digit that is taken for a password after a remark: shorter ones are terms."""

STRONG = 8
"""Characters of the shortest password that may look like code."""

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
_LINK = (b"http://", b"https://", b"$", b"./", b"sha", b"urn:", b"0x", b"arn:", b"op://")
_REFERENCE = re.compile(rb"[A-Za-z][\w+-]*://.*|(?:vault|ssm|arn|keychain|env|file|sops|enc):.*", re.DOTALL)
_CODE = re.compile(rb"[^(\[{<]*[(\[].*|[$%{<\[(*&|\\].*|[\w.]*(?:->|::).*", re.DOTALL)
_SCRAMBLED = re.compile(rb"[a-z]\d+[A-Z]|[A-Z]\d+[a-z]|[a-z][A-Z]+\d|\d[a-z]+[A-Z]|\d[A-Z]+[a-z]")
_ATTRIBUTE = re.compile(rb"[A-Za-z_]\w*\.")
_STRONG_PART = re.compile(rb"\.\d+[-\w]*$|[?!#*%^~+@;]|\.[A-Z][a-z]+\d+[!?#]?$")
_EXPRESSION = re.compile(rb"^[A-Za-z_][\w.]*[(\[]|^[${]|a-z|A-Z|0-9|\\[\\wdsbS]|%[sdr(]\W|[{}]{2}|^<\w+>")
_VOWELS = frozenset(b"aeiouy")
_UNSPEAKABLE = re.compile(rb"(?=[a-z]{12})[a-z]*[bcdfghjklmnpqrstvwxz]{5}[a-z]*")
_INSTRUCTIONS = frozenset(
    b"the your for please must enter is are should a an ein eine bitte muss sind ist ihr passwort password "
    b"passphrase".split()
)
_TO_FILL = frozenset(b"change me my here with some insert replace".split())
_NUMBER = re.compile(rb"\d[\d.,:/_-]*[A-Za-z%]{0,10}(?:-[a-z]+)*")
_TECHNICAL = re.compile(
    rb"(?i)(?:sha|md|base|utf-?8mb|utf|rsa|aes|http|oauth|python|py|ipv|iso|rfc|x|v|version|win|windows|web|log4|mp|h|s|p|ed|ecdsa|argon|bcrypt"
    rb"|user|test|example|option|step|page|part|chapter|table|figure|line|item|port|localhost)[-_/]?[v\d][\d.-]*\w{0,2}"
)
_NAME = re.compile(rb"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+|\w*[\[(].*")


def _has_both(value: bytes) -> bool:
    """Return whether a value has a digit and a letter."""
    return re.search(rb"\d", value) is not None and re.search(rb"[A-Za-z]", value) is not None


def is_password(value: bytes) -> bool:
    """Return whether the value of a field for passwords is one, and neither code nor a placeholder."""
    bare = value.strip(_AROUND)
    if len(bare) < SHORTEST or bare.lower() in _PLACEHOLDERS or _REFERENCE.fullmatch(bare) is not None:
        return False
    return _NO_PASSWORD.fullmatch(bare) is None or _is_strong(bare) or _is_unspeakable(bare)


def _is_unspeakable(value: bytes) -> bool:
    """Return whether letters are no word: too many of them in a row are consonants."""
    return _UNSPEAKABLE.fullmatch(value) is not None and b"phrase" not in value


def _is_strong(value: bytes) -> bool:
    """Return whether a value that might be code is a password: no code has its digits and signs."""
    if b" " in value or not _has_both(value) or _CODE.fullmatch(value) is not None:
        return False
    if _ATTRIBUTE.match(value) is not None:
        return _STRONG_PART.search(value) is not None or _SCRAMBLED.search(value) is not None
    return len(value) >= STRONG and _SCRAMBLED.search(value) is not None


def is_argument(value: bytes) -> bool:
    """Return whether the argument of a command is a password, and neither a variable nor code."""
    bare = value.strip(b" \t\"'`,;")
    if b" " in bare:
        return is_phrase(bare)
    if bare[:1] in (b"$", b"<", b"{", b"%", b"-", b"/") or _REFERENCE.fullmatch(bare) is not None:
        return False
    plain = _has_both(bare) and bare.lower() not in _PLACEHOLDERS and re.search(rb"[{}()<>=\[\]]", bare) is None
    return plain or is_password(bare)


def is_sql_password(value: bytes) -> bool:
    """Return whether the quoted text after the word of SQL for a password is one; it may be an ordinary word."""
    return is_argument(value) or (value.isalpha() and is_quoted_word(value))


def is_mixed_word(value: bytes) -> bool:
    """Return whether a word of digits and letters is a password, and no number, version or technical term."""
    bare = value.strip(_AROUND)
    if len(bare) < MIXED_WORD or not _has_both(bare):
        return False
    return _NUMBER.fullmatch(bare) is None and _TECHNICAL.fullmatch(bare) is None and is_password(bare)


def is_phrase(value: bytes) -> bool:
    """Return whether some words are a pass phrase, and no sentence about one."""
    words = value.strip(_AROUND).lower().split(b" ")
    return 3 <= len(words) <= 10 and _INSTRUCTIONS.isdisjoint(words)  # noqa: PLR2004 - words of a phrase


def is_words(value: bytes) -> bool:
    """Return whether the words after the name of a phrase are the phrase, and no sentence about it."""
    return _INSTRUCTIONS.isdisjoint(re.split(rb"[ -]", value))


def is_numbered_phrase(value: bytes) -> bool:
    """Return whether some words with a number at their end are a pass phrase."""
    return is_phrase(value) and re.search(rb"\d[!?.]?$", value) is not None


def is_letters(value: bytes) -> bool:
    """Return whether groups of letters are random: one of them has no vowel, as hardly a word has."""
    return any(_VOWELS.isdisjoint(group) for group in re.split(rb"[ -]", value.lower()))


def is_hyphened(value: bytes) -> bool:
    """Return whether words with hyphens are a pass phrase, and no placeholder."""
    return (_PLACEHOLDERS | _REMARKS | _INSTRUCTIONS | _TO_FILL).isdisjoint(value.lower().split(b"-"))


def is_address_password(value: bytes) -> bool:
    """Return whether the word between a user and a host is a password; there is no code in that place.

    It may be an ordinary word, but none that stands for a password in an example.
    """
    plain = re.fullmatch(rb"[A-Za-z]{5,}", value) or (re.fullmatch(rb"[\w.!*+~-]{6,}", value) and _has_both(value))
    stands_for_one = re.search(rb"(?i)pass|pwd|secret|token|key|user|credential|example|xxx", value) is not None
    return is_password(value) or (bool(plain) and not stands_for_one and value.lower() not in _PLACEHOLDERS)


def is_path_secret(value: bytes) -> bool:
    """Return whether a part of a path is a secret, and no name or date with a number."""
    return is_random(value) and (len(value) >= 20 or not is_digest(value))  # noqa: PLR2004 - longer than words


def is_query_secret(value: bytes) -> bool:
    """Return whether the value of a parameter for secrets is one; it may be short."""
    return is_named_secret(value) or _SCRAMBLED.search(value) is not None


def is_quoted_secret(value: bytes) -> bool:
    """Return whether the quoted value of a field for secrets is one; it may have any sign."""
    if value.startswith(_LINK) or _EXPRESSION.search(value) is not None or not _has_both(value):
        return False
    signs = len({*re.sub(rb"[\w ./:-]", b"", value)})
    if len(value) < 40:  # noqa: PLR2004 - longer ones are random wherever they have so many signs
        return signs > 1 and b" " not in value and _SCRAMBLED.search(value) is not None
    return signs > 3 and value.count(b" ") * 8 < len(value)  # noqa: PLR2004 - as above


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
    if value.startswith(_LINK) or (value.startswith(b"/") and (value.count(b"/") > 2 or not is_random(value))):  # noqa: PLR2004 - a path
        return False
    return is_varied(value) and (_NAME.fullmatch(value) is None or is_random(value))


_DIGEST = re.compile(rb"(?i)(?:.*[_-])?[0-9a-f]+|(?:sha|md5|blake|crc|uuid|commit|rev|digest|hash|etag|integrity).*")


def is_digest(value: bytes) -> bool:
    """Return whether a text may be the digest of something, which is no secret."""
    return _DIGEST.fullmatch(value) is not None
