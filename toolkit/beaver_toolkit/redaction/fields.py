"""Secrets as the value of a field: assignments in code, configuration, headers, cookies, options of commands."""

from beaver_toolkit.redaction.randomness import is_random, is_varied
from beaver_toolkit.redaction.rules import IN_QUOTES, MIXED, QUOTE, Rule
from beaver_toolkit.redaction.values import (
    is_argument,
    is_hyphened,
    is_letters,
    is_mixed_word,
    is_named_secret,
    is_numbered_phrase,
    is_password,
    is_phrase,
    is_quoted_secret,
    is_quoted_word,
)

_LONG_NAMES = (
    r"secret|token|api[_ -]?key|access[_ -]?key|private[_ -]?key|signing[_ -]?key|encryption[_ -]?key|master[_ -]?key"
    r"|priv[_-]?key|account[_ -]?key|shared[_ -]?key|service[_ -]?key|auth[_ -]?key|licen[cs]e[_ -]?key|app[_ -]?key"
    r"|deploy[_ -]?key"
    r"|integration[_ -]?key|write[_ -]?key|security[_ -]?key|ssh[_ -]?key|key[_ -]?base|credentials?|webhook"
    r"|signature"
    r"|client[_ -]?key|application[_ -]?key|host[_ -]?key|connection[_ -]?string|recovery[_ -]?codes?|"
    r"backup[_ -]?codes?"
    r"|code[_-]?verifier|schl(?:ü|ue)ssel|geheimnis|\w{1,20}_(?:salt|session)"
)
_PUBLIC = (
    r"(?i)(?:public|project|publishable|partition|primary|foreign|sort|cache|idempotency|object|row|map|measurement"
    r"|tracking)[ _.-]?(?:key|id)(?: id)?[\w\]]{0,20}[\s\"'`:=>,\\]{1,8}$|(?:finger|thumb)print\W{1,6}$"
    r"|checksum\W{1,6}$|\bsha\d{1,3}[:=-]$"
    r"|\b(?:trace|request|correlation|activity|operation|event)[ _-]?id[\s\"'`:=]{1,8}$"
)
_SHORT_NAMES = r"key|login|auth|jwt|bearer|dsn|psk|sig|sid|pat|otp|totp"
_NAME = rf"(?:(?:{_LONG_NAMES})[\w.\]-]*|(?:\b|_)(?:{_SHORT_NAMES})(?:_\w+)?\b|(?-i:\b[AS]K|[a-z](?:Key|Id))\b)"
_WORD = (
    r"(?:(?:passwords?|passwd|pass[_-]?phrase|passcode|passwort|kennwort)\w*|(?:\b|_)(?:ssh)?(?:pass|pwd|pw"
    r"|psk)(?:_\w+)?\b|(?-i:[a-z](?:Pass|Pwd|Pw)\b))"
)
_WORD_HINT = (
    r"(?i)pass(?:word|wd|[_-]?phrase|code|wort)|kennwort"
    r"|(?:pass|pwd|pw|psk)(?:_\w+)?\\?[\"'`\]]{0,2}(?:\s{0,3}[:=>-]|\x{ff1a}|\s?\x{2192})"
)
_NAME_HINT = (
    r"(?i)secret|token|key|login|(?-i:\b[AS]K\b)|credential|auth|jwt|bearer|dsn|webhook|signature|psk|sig|sid"
    r"|connection|"
    r"codes?\b|(?:\b|_)pat\b|otp|schl(?:ü|ue)ssel|geheimnis|verifier|_salt|_session"
)
_PAIR_HINT = r"(?i)(?:pass(?:word|wd|[_-]?phrase|code|wort)?|kennwort|pwd|pw|psk)\w*\\?[\"'`]\s{0,2},"
_GIVEN = (
    r"(?:\s{0,3}:\s{0,3}[A-Za-z]{3,10}(?:\[str\])?\s{0,2}=\s{0,3}|\s{0,3}(?:=>|:=|=|:|->|\x{ff1a}|\x{2192})\s{0,3})"
)
_KEY = r"[A-Za-z0-9_~+/=.:|@%$!#*-]"
_RUN = r"[A-Za-z0-9_~+/=.-]"
_PREFIX = rf"(?:[brufBRUF]{{0,2}}{QUOTE})?"
_SCHEMES = (
    r"bearer|basic|token|apikey|api-key|digest|negotiate|bot|key|splunk|genie ?key|sso-key|"
    r"hmac|snyk|klaviyo-api-key|ssws|discogs token="
)
RULES = (
    Rule(
        kind="authorization header",
        pattern=rf"(?i)(?:authorization{QUOTE}?\]?\s{{0,3}}[:=,]\s{{0,3}}{_PREFIX}(?:(?:{_SCHEMES}|[a-z][a-z-]{{2,20}})"
        rf"\s+)?|\b(?:bearer|basic)\s+){QUOTE}?([A-Za-z0-9._~+/=:|-]{{8,}})",
        hints=(r"(?i)authorization|bearer|basic ",),
        check=is_named_secret,
        rank=1,
    ),
    Rule(
        kind="cookie",
        pattern=rf"(?i)\b(?:set-)?cookies?{QUOTE}?\s{{0,3}}[:=]\s{{0,3}}{_PREFIX}([\w.%-]{{1,60}}=[^\r\n\"'`\x00-\x1f]{{"
        rf"6,}})",
        hints=("(?i)cookie", MIXED),
        check=is_varied,
        rank=1,
    ),
    Rule(
        kind="cookie",
        pattern=r"(?i)\b[\w.-]{0,20}(?:sess(?:ion)?(?:[_-]?id)?|sid)=([A-Za-z0-9%._+/=-]{16,})",
        hints=("(?i)(?:sess|sid|session|id)=", MIXED),
        check=is_varied,
        rank=1,
    ),
    Rule(
        kind="secret",
        pattern=rf"(?i){_NAME}{QUOTE}?\]?(?:{_GIVEN}|\s{{0,2}},\s{{0,2}}|\s?>){_PREFIX}({_KEY}{{8,}})",
        hints=(_NAME_HINT, MIXED),
        unless=_PUBLIC,
        check=is_named_secret,
        rank=2,
    ),
    Rule(
        kind="secret",
        pattern=rf"(?i)(?:{_NAME}|\w*salt){QUOTE}?\]?(?:{_GIVEN}|\s{{0,2}},\s{{0,2}})"
        rf"(?:[bruf]{{0,2}}\\?\"([ !#-~]{{12,200}})\\?\"|[bruf]{{0,2}}'([ -&(-~]{{12,200}})')",
        hints=(r"(?i)(?:secret|key|token|salt)\w*\\?[\"'`]?\s{0,3}(?:[:=,]|=>)\s{0,3}[bruf]?\\?[\"']",),
        check=is_quoted_secret,
        rank=1,
    ),
    Rule(
        kind="secret",
        pattern=r"(?i)headers[\"']?\s?[=:]\s?[\"']?(?:[\w-]{1,40}=[^,\s\"']{1,80},)?[\w-]{0,40}(?:x-|key|token"
        r"|auth|api)[\w-]{0,40}=([A-Za-z0-9_~+/=.-]{12,})",
        hints=(r"(?i)headers[\"']?\s?[=:]", MIXED),
        check=is_named_secret,
        rank=2,
    ),
    Rule(
        kind="secret",
        pattern=rf"{_RUN}*(?:{MIXED}){_RUN}{{8,}}|{_RUN}{{8,}}(?:{MIXED}){_RUN}*",
        hints=(_NAME_HINT, MIXED),
        unless=_PUBLIC,
        before=rf"(?i)(?:{_LONG_NAMES}|\b(?:{_SHORT_NAMES}))\w*\b.*[^\w~+/=.-]$|[a-z](?-i:Key|Token"
        rf"|Secret)\b.*[^\w~+/=.-]$|(?:{_LONG_NAMES})\P{{Latin}}*$",
        check=lambda value: is_random(value) and is_named_secret(value),
        rank=3,
    ),
    Rule(
        kind="secret",
        pattern=r"(?:密钥|密鑰|秘钥|令牌|私钥|凭证|凭据|授权码)[^\r\n\x00-\x1f]{0,60}?([A-Za-z0-9_~+/=.-]{16,})",
        hints=("(?i)密钥|密鑰|秘钥|令牌|私钥|凭证|凭据|授权码",),
        check=is_varied,
        rank=3,
    ),
    Rule(
        kind="password",
        pattern=rf"(?i){_WORD}{QUOTE}?\]?(?:{_GIVEN}|\s{{1,3}}value=)(?:[bruf]{{0,2}}\"([^\"\\\s\x00-\x1f]{{4,}})"
        rf"\"|[bruf]{{0,2}}'([^'\\\s\x00-\x1f]{{4,}})'|{QUOTE}?({IN_QUOTES}{{4,}}))",
        hints=(_WORD_HINT,),
        check=is_password,
        rank=2,
    ),
    Rule(
        kind="password",
        pattern=rf"(?i){_WORD}{QUOTE}\s{{0,2}},\s{{0,2}}{QUOTE}({IN_QUOTES}{{6,}}){QUOTE}",
        hints=(_PAIR_HINT,),
        check=is_mixed_word,
        rank=2,
    ),
    Rule(
        kind="password",
        pattern=rf"(?i)(?:{_WORD}|\bapp[- ](?:specific[- ])?passwor[dt])"
        rf"(?:\s(?:for|für|of|von)\s[^\r\n.:,]{{1,30}}?)?[^\w\r\n]{{0,6}}(?:is|ist|lautet|=)?"
        rf"\s?{QUOTE}?((?:[a-z]{{4}}[ -]){{3}}[a-z]{{4}})\b",
        hints=(_WORD_HINT,),
        check=is_letters,
        rank=2,
    ),
    Rule(
        kind="password",
        pattern=r"(?i)\b(?:password|secret|key|key-string)\s[0-9]\s([0-9A-F]{6,}|\$[^\s\x00-\x1f]{6,})",
        hints=(r"(?i)(?:password|secret|key|key-string)\s\d\s[0-9A-F$]",),
        rank=2,
    ),
    Rule(
        kind="password",
        pattern=rf"(?i){_WORD}{QUOTE}?\]?{_GIVEN}{QUOTE}([a-z]{{6,}}){QUOTE}",
        hints=(_WORD_HINT,),
        check=is_quoted_word,
        rank=2,
    ),
    Rule(
        kind="password",
        pattern=r"(?i)pass(?:word|wd|phrase|code|wort)?\b[^<>\r\n\x00-\x1f]{0,40}>([^<>\s\x00-\x1f]{4,})</",
        hints=(_WORD_HINT, "</"),
        check=is_argument,
        rank=2,
    ),
    Rule(
        kind="password",
        pattern=r"(?i)\bdefine\s?\(\s{0,2}['\"]\w*(?:pass|pwd|pw|passwd|password"
        r"|passphrase)\w{0,20}['\"]\s{0,2},\s{0,2}"
        r"(?:'([^'\r\n\x00-\x1f]{4,80})'|\"([^\"\r\n\x00-\x1f]{4,80})\")",
        hints=(r"(?i)\bdefine\s?\(\s{0,2}['\"]",),
        check=is_argument,
        rank=2,
    ),
    Rule(
        kind="password",
        pattern=rf"\b[A-Z0-9_]{{0,40}}(?:PASSWORD|PASSWD|PASSPHRASE|PASS|PWD|PW)\s?[:=]\s?{QUOTE}?([a-z]{{3,}}"
        rf"(?:-[a-z]{{2,}}){{2,6}}){QUOTE}?(?:\s|$)",
        hints=(r"P(?:ASS(?:WORD|WD|PHRASE)?|WD|W)\s?[:=]",),
        check=is_hyphened,
        rank=2,
    ),
    Rule(
        kind="pass phrase",
        pattern=rf"(?i)(?:pass[_-]?phrase|passwor[dt]|kennwort)\w*{QUOTE}?\s{{0,2}}(?:[:=]|is|ist"
        rf"|lautet)\s{{0,2}}(?:\"([^\"\r\n\x00-\x1f]{{12,80}})\"|'([^'\r\n\x00-\x1f]{{12,80}})'"
        r"|\x{201e}([^\x{201c}\r\n\x00-\x1f]{12,80})\x{201c})",
        hints=(r"(?i)pass[_-]?phrase|passwor[dt]|kennwort", r"\d[!?.]?[\"'\x{201c}]"),
        check=is_numbered_phrase,
        rank=2,
    ),
    Rule(
        kind="pass phrase",
        pattern=r"(?i)\w*PASSPHRASE\s?=\s?(?:\"([^\"\r\n$\x00-\x1f]{12,80})\"|'([^'\r\n$\x00-\x1f]{12,80})')",
        hints=(r"(?i)passphrase\s?=\s?[\"']",),
        check=is_phrase,
        rank=2,
    ),
    Rule(
        kind="password",
        pattern=r"[A-Za-z0-9_.*-]+:(?:\d{2,5}|\*):[\w*-]+:[\w*-]+:([^\s:\x00-\x1f]{4,})",
        hints=(r":(?:\d{2,5}|\*):[\w*-]+:[\w*-]+:",),
        check=is_password,
        rank=2,
    ),
    Rule(
        kind="password",
        pattern=r"WIFI:[^\r\n\x00-\x1f]{0,100}?;P:([^;\r\n\x00-\x1f]{4,})",
        hints=("WIFI:",),
    ),
    Rule(
        kind="recovery code",
        pattern=r"(?i)(?:recovery|backup|wiederherstellungs)[ _-]?codes?\b[^\r\n\x00-\x1f]{0,30}?[:=]\s{0,3}"
        r"((?:[a-z0-9]{4,10}(?:-[a-z0-9]{4,10}){0,5}[\s,;]{0,3})+)",
        hints=("(?i)(?:recovery|backup|wiederherstellungs)[ _-]?code",),
        check=lambda value: any(each in b"0123456789" for each in value),
        rank=2,
    ),
)  # fmt: skip
