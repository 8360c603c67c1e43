"""Codes of few characters, which only the words before them tell: PINs, codes for once, phrases of wallets."""

import re

from beaver_toolkit.redaction.rules import MIXED, QUOTE, Rule
from beaver_toolkit.redaction.values import is_mixed_word

_DIGITS = r"(\d{3}[ -]\d{3}|\d\d \d\d \d\d|\d{4,8})\b"
_TOLD = (
    r"(?:\s(?:is|was|are|lautet|ist|war)(?: now| still| jetzt)?:?\s{1,2}|\s?[:=\x{ff1a}]\s{0,3}|(?:是|为|為"
    r"|改成了?)\s{0,2})"
)
_WHERE = r"(?:\s(?:for|to|of|on|at|in|für|vom?|zum?|zur|am|der|des|auf|bei)\s[^\r\n.,:;!?\d]{1,50}?)?"
_LOCKS = r"door|gate|alarm|garage|entry|safe|lock(?:er|box)?|key ?safe|tür|haustür|tor|tresor|schloss|alarmanlage"
_ONCE = (
    r"verification|confirmation|security|one[- ]?time|login|log-?in|sign[- ]?in|access|auth(?:entication"
    r"|orization)?|2fa|mfa|otp|sms"
    r"|reset|unlock|pairing|bestätigungs|verifizierungs|sicherheits|einmal|freischalt|zugangs|anmelde|entsperr"
)
_FEWEST = 12
_PROSE = frozenset(b"the and for are was were not but his her our its from has had what who how".split())
_WORDS = re.compile(rb"[a-z]{3,8}")


def _is_seed(phrase: bytes) -> bool:
    """Return whether a row of words is as long as the phrase of a wallet, and has no word that joins others."""
    words = _WORDS.findall(phrase)
    return len(words) >= _FEWEST and _PROSE.isdisjoint(words) and len({*words}) * 2 > len(words)


def _has_digit(value: bytes) -> bool:
    return any(0x30 <= each <= 0x39 for each in value)  # noqa: PLR2004 - the digits of ASCII


RULES = (
    Rule(
        kind="code",
        pattern=rf"(?i)\b(?:(?:{_ONCE}|{_LOCKS})[ -]?(?:code|pass ?code|password|passwort|pin|tan)|otp|tan"
        rf"|passcode|geheimzahl"
        rf"|pin(?:[ -]?code)?)\b{_WHERE}{_TOLD}{_DIGITS}",
        hints=(r"(?i)code\b|\bpin|\botp\b|\btan\b|geheimzahl|(?:time|einmal|login)[ -]?pass", r"\d{3}"),
        rank=2,
    ),
    Rule(
        kind="code",
        pattern=rf"(?:\bPUK\s?\d?|\bPIN\d?)(?:[- ]?Code)?{_WHERE}(?:{_TOLD}|\s)(\d{{4,8}})\b"
        rf"|\b(?i:{_LOCKS}|fach|box)\b[^\r\n.]{{0,40}}?\s(?i:opens? with|unlocks? with|öffnet (?:sich )?mit"
        rf"|geht (?:auf )?mit|code)"
        rf"(?:\s(?:the )?(?:code|number|combination))?\s(\d{{4,8}})\b",
        hints=(r"\bPUK|\bPIN|(?i:opens? with|unlocks? with|öffnet (?:sich )?mit|geht (?:auf )?mit|code\s\d)",),
        rank=2,
    ),
    Rule(
        kind="code",
        pattern=rf"(?i)\b(?:code|pin)\s(?:für|fürs|for|of|vom|von|zum|zur|to|from)\s[^\r\n.:,;\d]{{0,40}}?(?:{_LOCKS}|authenticator"
        rf"|office|büro|vault)\w{{0,12}}{_TOLD}{_DIGITS}"
        r"|\b(?:unlocks? with|entsperrt? (?:man )?mit|entsperren mit)\s(\d{4,8})\b"
        r"|\b(?:unlock|entsperr)\w{0,4}[^\r\n.\d]{0,40}?\b(?:enter|type|gib|tippe?)\s(\d{4,8})\b"
        rf"|\b((?:[A-Z]-)?\d{{4,8}})\s(?:is|ist)\s(?:your|dein|ihr|the|der)\s(?:[^\r\n.\d]{{0,30}}?\s)?(?:{_ONCE})?"
        r"[ -]?(?:code|pin|tan|otp|passcode)\b",
        hints=(r"(?i)\b(?:code|pin)\s(?:f|o|v|z|t)|unlock|entsperr|\d\s(?:is|ist)\s[tyid]",),
        rank=2,
    ),
    Rule(
        kind="code",
        pattern=r"(?:密码|口令|暗码)[^\r\n!-~\x00-\x1f\x{3002}]{0,6}?(?:换成|改成|换为|改为|变成|就是|设为|设成)了?\s{0,3}(\d{4,8})\b"
        r"|(?:密码|口令)(\d{6})(?:[^\w位年月个]|$)",
        hints=("密码|口令|暗码",),
        rank=2,
    ),
    Rule(
        kind="code",
        pattern=r"(?i)(?:验证码|校验码|动态码|动态密码|门禁码|取件码|pin ?码|puk ?码?|开门码|密码|暗码)"
        r"[^\r\n!-~\x00-\x1f\x{3002}]{0,12}?"
        r"(?:是|为|為|:|\x{ff1a})\s{0,3}(\d{4,8})\b",
        hints=("(?i)码|puk",),
        rank=2,
    ),
    Rule(
        kind="card code",
        pattern=rf"(?i)(?:\b(?:cvv2?|cvc2?|cvn|card (?:security|verification) (?:code|number)|security code "
        rf"(?:on|of) (?:the|my|your) (?:back|card)|(?:karten)?prüf(?:nummer|ziffern?))\b|安全码)"
        rf"{QUOTE}?{_WHERE}[^\r\n\dA-Za-z]{{0,6}}(?:(?:is|ist|lautet|=)\s)?{QUOTE}?(\d{{3,4}})\b",
        hints=(r"(?i)\bcv[vcn]|card (?:security|verification)|security code o|prüf(?:nummer|ziffer)|安全码",),
        rank=2,
    ),
    Rule(
        kind="seed phrase",
        pattern=r"\b((?:[a-z]{3,8}[ ,]{1,2}){11,25}[a-z]{3,8})\b",
        hints=((r"(?i)phrase|mnemonic|seed|wallet|ledger|trezor|metamask|(?:12|24|twelve|secret|backup"
        r"|recovery) words|wörter|助记词|单词"),),
        before=r"(?i)phrase|mnemonic|seed|wallet|ledger|trezor|metamask|words|wörter|助记词|单词",
        check=_is_seed,
        rank=1,
    ),
    Rule(
        kind="recovery code",
        pattern=r"(?i)(?:recovery|backup|rescue|emergency|scratch|wiederherstellungs|notfall|ersatz)[ _-]?"
        r"(?:code|key|schlüssel)s?\b"
        r"[^\r\n\x00-\x1f]{0,30}?\s((?:[a-z0-9]{4,10}-){1,7}[a-z0-9]{4,10})\b",
        hints=("(?i)(?:recovery|backup|rescue|emergency|scratch|herstellungs|notfall|ersatz)[ _-]?(?:code|key|schl)",),
        check=_has_digit,
        rank=2,
    ),
    Rule(
        kind="recovery key",
        pattern=r"\b(\d{6}(?:-\d{6}){7})\b",
        hints=(r"\d{6}-\d{6}-",),
        rank=1,
    ),
    Rule(
        kind="one-time secret",
        pattern=r"(?i)otpauth://[^\s\"'<>\x00-\x1f]{1,200}?[?&]secret=([A-Z2-7]{10,})"
        rf"|(?:setup|set-up|einrichtungs|totp|otp|2fa|mfa|authenticator|manual entry)[ _-]?(?:key|schlüssel|code"
        rf"|secret|seed){QUOTE}?"
        rf"(?:\s(?:is|ist|lautet))?\s{{0,2}}[:=]?\s{{0,3}}{QUOTE}?((?:[a-z2-7]{{4}}[ -]){{3,15}}[a-z2-7]{{4}}"
        rf"|[a-z2-7]{{16,64}})\b",
        hints=((r"(?i)otpauth|(?:setup|set-up|einrichtungs|otp|[2m]fa|authenticator|entry)[ _-]?(?:key|schlüssel"
        r"|code|secret|seed)"),),
        check=_has_digit,
        rank=1,
    ),
    Rule(
        kind="one-time secret",
        pattern=rf"(?i)\bkey\b[^\r\n:\d]{{0,30}}:\s{QUOTE}?((?:[a-z2-7]{{4}} ){{5,15}}[a-z2-7]{{4}})\b",
        hints=(r"(?i)\bkey\b",),
        check=_has_digit,
        rank=1,
    ),
    Rule(
        kind="one-time secret",
        pattern=rf"(?i)\b[th]?otp\w{{0,12}}\(\s{{0,2}}{QUOTE}(?-i:([A-Z2-7]{{16,64}})){QUOTE}",
        hints=(r"(?i)otp\w*\(\s{0,2}[\"']",),
        rank=1,
    ),
    Rule(
        kind="license key",
        pattern=r"(?i)(?:licen[cs]e|lizenz|product|produkt|serial|activation|aktivierungs|registration|cd)[ _-]?"
        r"(?:key|code|schl(?:ü|ue)ssel|number)?"
        r"\b[^\r\n\x00-\x1f]{0,40}?\b((?-i:[A-Z0-9]{4,6}(?:-[A-Z0-9]{4,6}){3,7}))\b",
        hints=((r"(?i)licen[cs]e|lizenz|(?:product|produkt|serial|activation|aktivierungs|registration|cd)[ _-]?"
        r"(?:key|code|schl|number)"), "-[A-Z0-9]{4}"),
        check=_has_digit,
        rank=2,
    ),
    Rule(
        kind="secret",
        pattern=r"(?i)\b\w*(?:client|login|auth\w*|connect|search|wallet|signin|api)\(\s{0,2}"
        rf"(?:{QUOTE}[^\"'\r\n]{{1,60}}{QUOTE}\s{{0,2}},\s{{0,2}})?{QUOTE}((?:0x)?[0-9a-f]{{32,64}}"
        rf"|[0-9a-f]{{8}}(?:-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}}){QUOTE}",
        hints=(r"(?i)(?:client|login|auth|connect|search|wallet|signin|api)\w*\(\s{0,2}[\"']", MIXED),
        rank=2,
    ),
    Rule(
        kind="password",
        pattern=r"(?i)\b(?:login|connect|authenticate|auth|signin"
        r"|basic_?auth)\(\s{0,2}[\"'][^\"'\r\n]{1,60}[\"']\s{0,2},\s{0,2}[\"']([!#-&(-~]{6,60})[\"']\s{0,2}\)",
        hints=(r"(?i)(?:client|login|auth|connect|search|wallet|signin)\w*\(\s{0,2}[\"']",),
        check=is_mixed_word,
        rank=2,
    ),
)  # fmt: skip
