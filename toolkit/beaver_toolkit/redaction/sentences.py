"""Passwords in plain sentences, in English, German and Chinese."""

from beaver_toolkit.redaction.rules import QUOTE, Rule
from beaver_toolkit.redaction.values import (
    is_mixed_word,
    is_numbered_phrase,
    is_said,
    is_said_in_chinese,
    is_said_of_mine,
    is_said_with_digit,
    is_words,
)

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
_ORT = r"(?:\s(?:fürs?|fuer|von|vom|zu|zum|zur|beim|bei|im|in|am|auf|des|der|meines|meiner)\s[^\r\n.,:;!?]{1,60}?)?"
_OWNERS = "my|our|his|her|their|root|admin|wifi|wi-fi|router|vpn|new|old|bank|email|login|server|database|db"
_END = r"(?:\s*$|\s+(?:and|but|so|if|in case|please|for|on|btw|und|aber|falls|bitte)\b|[.,;!\"'])"
_NAMES = (
    r"(?i)pass ?(?:word|phrase|code|key)|passwd|\bpwd\b|\bpw\b|\bpin\b|(?:login|door|alarm) code|fi key"
    r"|credential|secret|kennwort|passwor|passwör|zugangs|geheimzahl|schlüssel|losungswort|\bcode\s(?:ist|lautet"
    r"|war|für)\b"
)
_PASSWORDS = r"(?i)pass ?word|passwd|pass ?phrase|passcode|\bpwd\b|\bpw\b|\bpin\b"
_NAMED = (
    r"(?i)pass ?(?:word|phrase|code|key|wort)|passwd|\bpass(?: is| was|\s?[:=]| für| for)|\bpwd\b|\bpw\b"
    r"|kennwort|zugangscode|losungswort"
)
_GIVE = (
    r"(?:type|enter|use|try|it'?s|it is|that'?s|now|changed to|switched to|instead|actually|correction|should be"
    r"|i meant|put in"
    r"|gib|nimm|tippe?|nehme|benutze|verwende|schreib|jetzt|nun|sondern|eigentlich|stattdessen|lautet|es ist)[:,]?"
)

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
        pattern=rf"(?i)\b(?:logins?|credentials?|creds|log ?in (?:with|as)|sign ?in (?:with|as)|auth-user-pass|"
        rf"zugangsdaten|zugang|anmeldung|anmelden (?:mit|als))\b(?:[^\r\n:/]{{0,40}}?:\s?"
        rf"|[^\r\n:/]{{0,40}}?\s){QUOTE}?[\w.@+-]{{2,60}}{QUOTE}?"
        rf"(?:\s?[/:,|]\s?(?:then |dann |and |und )?|\s(?:and|und|with|mit|using|then|dann)\s){_VALUE}",
        hints=(r"(?i)login|credential|creds|log ?in |sign ?in |auth-user-pass|zugang|anmeld",),
        check=is_mixed_word,
        rank=3,
    ),
    Rule(
        kind="pass phrase",
        pattern=rf"(?i)(?:pass ?phrase|seed ?phrase|recovery phrase|mnemonic(?: phrase)?|seed words|"
        rf"secret words|助记词)[^\r\n.:]{{0,40}}?(?:\s(?:is|are|was|lautet|ist)|\s?[:=\x{{ff1a}}]|"
        rf"是)\s{{0,3}}{QUOTE}?((?:[a-z]{{3,12}}[ -]){{3,23}}[a-z]{{3,12}})",
        hints=("(?i)phrase|mnemonic|seed words|secret words|助记词",),
        check=is_words,
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
        pattern=rf"(?i)\b(?:use|with|set|try|enter|type|took|choose|chose|nimm|nehme|benutze|verwende|mit|nutze"
        rf"|gib)\s{QUOTE}?([!-~]{{3,}}[!-+/-:<-~-]){QUOTE}?"
        rf"\s(?:as|als)\s(?:(?:the|my|your|our|a|new|mein|dein|unser|das|neues)\s){{0,2}}(?:\w{{1,20}}\s)?"
        rf"(?:{_ENGLISH}|{_GERMAN})\b",
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
        pattern=rf"用\s*{QUOTE}?([!-~]{{4,}}){QUOTE}?\s*(?:作为|当作?|做|这个|这|那个|为)[^\r\n!-~]{{0,12}}?{_CHINESE}",
        hints=(f"(?i){_CHINESE}",),
        check=is_said_in_chinese,
        rank=2,
    ),
    Rule(
        kind="password",
        pattern=rf"(?i)\b(?:{_ENGLISH}|pass)\b(?:\s(?:for|to|of|on|at|in|für)\s[^\r\n.,:;!?]{{1,30}}?)?\s?(?:[:=\x{{ff1a}}]|\s(?:is|was|ist"
        rf"|war)\b)\s{{0,3}}{_VALUE}",
        hints=(_NAMED, r"(?i)\s(?:for|to|of|on|at|in|für)\s|\bpass (?:is|was)"),
        check=is_mixed_word,
        rank=3,
    ),
    Rule(
        kind="password",
        pattern=rf"(?i)(?:pass ?(?:word|phrase|code|wort)|passwd|\bpwd|\bpw"
        rf"|kennwort)\b[^\r\n]{{0,60}}?\b{_GIVE}\s(?:(?:now|actually|again|in|it|da|dort|einfach|mal|hier|das|is|to"
        rf"|ist|auf|eher)\s){{0,2}}{_VALUE}",
        hints=(_NAMED, rf"(?i)\b{_GIVE}\s"),
        check=is_mixed_word,
        rank=3,
    ),
    Rule(
        kind="password",
        pattern=rf"(?i)\b(?:pass ?word|passwd|pwd|pw|passwort|kennwort)'?s\s{_VALUE}"
        rf"|\b(?:password|passwd|passwort|kennwort)\b[^\r\n.:]{{0,40}}?\b(?:from|von)\s[^\r\n.:]{{1,40}}?\s(?:to|auf|zu)"
        rf"\s{_VALUE}"
        rf"|\b(?:lautet|ist|is|was)\s(?:das|the|your|dein|mein|my)\s[^\r\n.:]{{0,20}}?(?:password|passwort|kennwort)\b"
        rf"[^\r\n.:]{{0,40}}?\s(?:still|(?:immer )?noch|now|jetzt)\s{_VALUE}",
        hints=(_NAMED, r"(?i)(?:d|pw|t)'?s\s|\s(?:from|von|still|noch|now|jetzt)\s"),
        check=is_mixed_word,
        rank=3,
    ),
    Rule(
        kind="password",
        pattern=rf"(?i)\b(?:login|account|konto|zugang)\b[^\r\n]{{0,40}}?\b(?:it'?s|isses|es ist)\s{_VALUE}"
        rf"|\b(?:with|mit)\s{_VALUE}\s(?:ins?|into|onto|in das|on(?:to)? the)\s(?:the\s|my\s)?"
        r"(?:wlan|wi-?fi|netzwerk|network|wiki|vpn)\b",
        hints=(
            r"(?i)login|account|konto|zugang|wlan|wi-?fi|network|netzwerk|wiki|vpn",
            r"(?i)\s(?:it'?s|isses|es ist|with|mit)\s",
        ),
        check=is_mixed_word,
        rank=3,
    ),
    Rule(
        kind="pass phrase",
        pattern=r"(?i)(?:passwor[dt]|kennwort|pass ?phrase)\b[^\r\n:]{0,60}:\s{1,2}("
        r"(?:[\wäöüÄÖÜß]{2,20} ){2,9}\d{1,4}[!?.]?)\s*$",
        hints=(r"(?i)passwor[dt]|kennwort|pass ?phrase", r":\s{1,2}[A-Za-z]"),
        check=is_numbered_phrase,
        rank=3,
    ),
    Rule(
        kind="password",
        pattern=r"(?i)(?:password|passwort|kennwort|密码)[^\r\n:]{0,60}:[ \t]{0,4}\r?\n\s{0,8}([!-~]{6,80})[ \t]*"
        r"(?:\r?\n|$)",
        hints=("(?i)password|passwort|kennwort|密码", r":[ \t]*\r?\n\s{0,8}[!-~]*\d"),
        check=is_mixed_word,
        rank=3,
    ),
    Rule(
        kind="password",
        pattern=rf"(?:密码|密碼|口令)[^\r\n\x00-\x1f]{{0,40}}?(?:改成|换成|改为|变成|其实是|应该是|不对|试试|输入|输|填"
        rf"|用)了?\s{{0,3}}{QUOTE}?([!-~]{{4,}})",
        hints=(f"(?i){_CHINESE}",),
        check=is_mixed_word,
        rank=3,
    ),
)  # fmt: skip
