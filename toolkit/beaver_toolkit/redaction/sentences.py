"""Passwords in plain sentences, in English, German and Chinese."""

from beaver_toolkit.redaction.rules import QUOTE, Rule
from beaver_toolkit.redaction.values import is_said, is_said_in_chinese, is_said_of_mine, is_said_with_digit

_VALUE = rf"{QUOTE}?([!-~]{{3,}}[!-+/-:<-~-])"
_ENGLISH = (
    r"(?:pass ?words?|passwd|pass ?phrase|passcode|pass ?key|pwd|pw|pin|pin code|login code|door code|alarm code"
    r"|wi-?fi key|credentials?|secret)"
)
_GERMAN = (
    r"(?:passwort|kennwort|passphrase|zugangscode|zugangsdaten|geheimzahl|pin|schlüssel|losungswort|passwörter|code)"
)
_CHINESE = r"(?:密码|密碼|口令|密钥|密鑰|秘钥|暗号|令牌|私钥|密语|授权码|PIN码)"
_PLACE = r"(?:\s(?:for|to|of|on|at|in)\s[^\r\n.,:;!?]{1,60}?)?"
_ORT = r"(?:\s(?:für|fuer|von|vom|zu|zum|zur|beim|bei|im|in|am|auf|des|der|meines|meiner)\s[^\r\n.,:;!?]{1,60}?)?"
_OWNERS = "my|our|his|her|their|root|admin|wifi|wi-fi|router|vpn|new|old|bank|email|login|server|database|db"
_END = r"(?:\s*$|\s+(?:and|but|so|if|in case|please|for|on|btw|und|aber|falls|bitte)\b|[.,;!\"'])"
_NAMES = (
    r"(?i)pass ?(?:word|phrase|code|key)|passwd|\bpwd\b|\bpw\b|\bpin\b|(?:login|door|alarm) code|fi key"
    r"|credential|secret|kennwort|passwor|passwör|zugangs|geheimzahl|schlüssel|losungswort|\bcode\s(?:ist|lautet|war|für)\b"
)
_PASSWORDS = r"(?i)pass ?word|passwd|pass ?phrase|passcode|\bpwd\b|\bpw\b|\bpin\b"

RULES = (
    Rule(
        kind="password",
        pattern=rf"(?i)\b{_ENGLISH}\b{_PLACE}\s{{0,2}}(?:\s(?:is|was|are|will be|has been|got|"
        rf"to|now|set|changed|reset|still|remains|currently)\b){{1,4}}\s{{0,2}}:?\s{{0,2}}{_VALUE}",
        hints=(_NAMES, r"(?i)\s(?:is|was|are|be|been|to)\b"),
        check=is_said,
        rank=2,
    ),
    Rule(
        kind="password",
        pattern=rf"(?i)\b(?:{_OWNERS})\s(?:[\w-]{{1,20}}\s){{0,3}}{_ENGLISH}\b{_PLACE}\s(?:is|"
        rf"was|=|:)(?: now| still)?\s{{0,2}}:?\s{{0,2}}{_VALUE}{_END}",
        hints=(_PASSWORDS, r"(?i)\s(?:is|was|=|:)\s"),
        check=is_said_of_mine,
        rank=2,
    ),
    Rule(
        kind="password",
        pattern=rf"(?i)\b(?:password|passwd|passcode|pwd|pw|passwort|kennwort)\s{_VALUE}",
        hints=(r"(?i)(?:pass(?:word|wd|code|wort)|pwd|pw|kennwort)\s",),
        check=is_said_with_digit,
        rank=3,
    ),
    Rule(
        kind="password",
        pattern=rf"(?i)\b(?:logins?|credentials?|creds|log in (?:with|as)|sign in (?:with|as)|"
        rf"zugangsdaten)\b[^\r\n:/]{{0,40}}?(?:\s|:\s?)[\w.@+-]{{2,60}}\s?[/:]\s?{_VALUE}",
        hints=(r"(?i)(?:login|credential|creds|log in |sign in |zugangsdaten)[^\r\n]*[/:]",),
        check=is_said_with_digit,
        rank=3,
    ),
    Rule(
        kind="pass phrase",
        pattern=rf"(?i)(?:pass ?phrase|seed ?phrase|recovery phrase|mnemonic(?: phrase)?|seed words|"
        rf"secret words|助记词)[^\r\n.:]{{0,40}}?(?:\s(?:is|are|was|lautet|ist)|\s?[:=\x{{ff1a}}]|"
        rf"是)\s{{0,3}}{QUOTE}?((?:[a-z]{{3,12}}[ -]){{3,23}}[a-z]{{3,12}})",
        hints=("(?i)phrase|mnemonic|seed words|secret words|助记词",),
        rank=2,
    ),
    Rule(
        kind="password",
        pattern=rf"(?i)(?:[\wäöüß-]{{1,20}})?{_GERMAN}{_ORT}\s(?:(?:ist|lautet|lautete|war|heißt|"
        rf"heisst|wurde|auf|geändert|gesetzt|jetzt|nun|aktuell|zu)\s){{1,4}}:?\s{{0,2}}{_VALUE}",
        hints=(_NAMES, r"(?i)\s(?:ist|lautete?|war|heißt|heisst|wurde|auf|jetzt|nun)\s"),
        check=is_said,
        rank=2,
    ),
    Rule(
        kind="password",
        pattern=rf"(?i)\b(?:(?:mein|unser|dein|sein|ihr)e?[sn]?\s(?:[\wäöüß-]{{1,20}}\s){{0,3}}|"
        rf"das\s)(?:[\wäöüß-]{{1,20}})?(?:passwort|kennwort){_ORT}\s(?:ist|lautet|war|"
        rf"heißt)(?: jetzt| nun)?:?\s{_VALUE}{_END}",
        hints=("(?i)passwort|kennwort",),
        check=is_said_of_mine,
        rank=2,
    ),
    Rule(
        kind="password",
        pattern=rf"(?i){_CHINESE}[^\r\n!-~\x{{3002}}\x{{ff0c}}\x00-\x1f]{{0,12}}?(?:是|为|為|叫|成|"
        rf":|=|\x{{ff1a}}|用|填)了?\s{{0,3}}{QUOTE}?\s?([!-~]{{3,}}[!-+/-:<-~-])",
        hints=(f"(?i){_CHINESE}",),
        check=is_said_in_chinese,
        rank=2,
    ),
    Rule(
        kind="password",
        pattern=rf"(?i)\b(?:use|with|set|try|enter|type|took|choose|chose|nimm|nehme|benutze|verwende)\s{QUOTE}?([!-~]{{3,}}[!-+/-:<-~-]){QUOTE}?"
        rf"\s(?:as|als)\s(?:(?:the|my|your|our|a|new|mein|dein|unser|das|neues)\s){{0,2}}(?:\w{{1,20}}\s)?(?:{_ENGLISH}|{_GERMAN})\b",
        hints=(_NAMES, r"(?i)\s(?:as|als)\s"),
        check=is_said,
        rank=2,
    ),
    Rule(
        kind="password",
        pattern=r"(?i)\b(?:pin|passcode|geheimzahl|door code|alarm code|pin ?code)\b"
        rf"(?:{_PLACE}|{_ORT})\s{{0,2}}(?:is|was|lautet|ist|:|=|\x{{ff1a}})\s{{0,2}}(\d{{4,8}})\b",
        hints=(r"(?i)\bpin|passcode|geheimzahl|door code|alarm code",),
        rank=2,
    ),
    Rule(
        kind="password",
        pattern=rf"(?i){_CHINESE}\s+([!-~]{{3,}}[!-+/-:<-~-])",
        hints=(f"(?i){_CHINESE}",),
        check=is_said_with_digit,
        rank=3,
    ),
    Rule(
        kind="password",
        pattern=rf"用\s*{QUOTE}?([!-~]{{4,}}){QUOTE}?\s*(?:作为|当作?|做)[^\r\n!-~]{{0,12}}?{_CHINESE}",
        hints=(f"(?i){_CHINESE}",),
        check=is_said_in_chinese,
        rank=2,
    ),
)  # fmt: skip
