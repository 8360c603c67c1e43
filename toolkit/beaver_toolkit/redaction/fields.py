"""Secrets as the value of a field: assignments in code, configuration, headers, cookies, options of commands."""

from beaver_toolkit.redaction.randomness import is_random, is_varied
from beaver_toolkit.redaction.rules import IN_QUOTES, MIXED, QUOTE, Rule
from beaver_toolkit.redaction.values import is_named_secret, is_password, is_quoted_word

_LONG_NAMES = (
    r"secret|token|api[_ -]?key|access[_ -]?key|private[_ -]?key|signing[_ -]?key|encryption[_ -]?key|master[_ -]?key"
    r"|account[_ -]?key|shared[_ -]?key|service[_ -]?key|auth[_ -]?key|licen[cs]e[_ -]?key|app[_ -]?key|deploy[_ -]?key"
    r"|integration[_ -]?key|write[_ -]?key|security[_ -]?key|ssh[_ -]?key|key[_ -]?base|credentials?|webhook|signature"
    r"|client[_ -]?key|application[_ -]?key|host[_ -]?key|connection[_ -]?string|recovery[_ -]?codes?|"
    r"backup[_ -]?codes?"
    r"|schlüssel|geheimnis"
)
_SHORT_NAMES = r"key|login|auth|jwt|bearer|dsn|psk|sig|sid|pat|otp|totp"
_NAME = rf"(?:(?:{_LONG_NAMES})[\w.\]-]*|(?:\b|_)(?:{_SHORT_NAMES})(?:_\w+)?\b|(?-i:\b[AS]K|[a-z](?:Key|Id))\b)"
_WORD = (
    r"(?:(?:passwords?|passwd|pass[_-]?phrase|passcode|passwort|kennwort)\w*|(?:\b|_)(?:pass|pwd|pw|psk)(?:_\w+)?\b)"
)
_WORD_HINT = (
    r"(?i)pass(?:word|wd|[_-]?phrase|code|wort)|kennwort"
    r"|(?:\b|_)(?:pass|pwd|pw|psk)(?:_\w+)?\\?[\"'`\]]{0,2}(?:\s{0,3}[:=>-]|\x{ff1a}|\s?\x{2192})"
)
_NAME_HINT = (
    r"(?i)secret|token|key|login|(?-i:\b[AS]K\b)|credential|auth|jwt|bearer|dsn|webhook|signature|psk|sig|sid|connection|"
    r"codes?\b|\bpat\b|otp|schlüssel|geheimnis"
)
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
_COMMANDS = (
    r"(?i)--pass|--pw|sshpass|identified (?:with|by)|requirepass|snmp-server|\bcurl\b|\bmysql|"
    r"password |docker|podman|\baz\b|redis-cli"
)

RULES = (
    Rule(
        kind="authorization header",
        pattern=rf"(?i)(?:authorization{QUOTE}?\]?\s{{0,3}}[:=,]\s{{0,3}}{_PREFIX}(?:(?:{_SCHEMES})"
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
        check=is_named_secret,
        rank=2,
    ),
    Rule(
        kind="secret",
        pattern=rf"{_RUN}*(?:{MIXED}){_RUN}{{8,}}|{_RUN}{{8,}}(?:{MIXED}){_RUN}*",
        hints=(_NAME_HINT, MIXED),
        before=rf"(?i)(?:{_LONG_NAMES}|\b(?:{_SHORT_NAMES}))\w*\b.*[^\w~+/=.-]$|[a-z](?-i:Key|Token|Secret)\b.*[^\w~+/=.-]$|(?:{_LONG_NAMES})\P{{Latin}}*$",
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
        pattern=rf"(?i){_WORD}{QUOTE}?\]?(?:{_GIVEN}|>)(?:[bruf]{{0,2}}\"([^\"\\\s\x00-\x1f]{{4,}})"
        rf"\"|[bruf]{{0,2}}'([^'\\\s\x00-\x1f]{{4,}})'|{QUOTE}?({IN_QUOTES}{{4,}}))",
        hints=(_WORD_HINT,),
        check=is_password,
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
        pattern=rf"(?i)(?:--(?:password|passwd|pass|pw)[ =]|sshpass -p ?|identified (?:with \w+ )"
        rf"?by |requirepass |snmp-server community |\bcurl\b[^\r\n]{{0,100}} (?:-u|--user)[ =]?{QUOTE}?[\w.@-]{{1,60}}:"
        rf"|\bmysql\w*\b[^\r\n]{{0,60}} -p|\blogin \S{{1,60}} password |\b(?:docker|podman|"
        rf"az|redis-cli)\b[^\r\n]{{0,100}} (?:-p|-a|--password-stdin <<<) ?){_PREFIX}({IN_QUOTES}{{5,}})",
        hints=(_COMMANDS,),
        check=is_password,
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
