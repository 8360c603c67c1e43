"""Passwords as arguments of commands, each after the option with which its command takes one."""

from beaver_toolkit.redaction.randomness import is_random
from beaver_toolkit.redaction.rules import IN_QUOTES, MIXED, QUOTE, Rule
from beaver_toolkit.redaction.values import is_argument, is_password, is_sql_password

_ARGUMENTS = r"[^\r\n|;]{0,120}?\s"
_OPTIONS = (
    (r"curl|wget|https?|restic", r"(?:-u|--user|-a|--auth)[ =]?{quote}?[\w.@+-]{{1,60}}:"),
    (r"(?:mysql|maria)\w*", r"-p"),
    (r"docker|podman|buildah|helm|crane|oras|az login|redis-cli|mongo\w*|cqlsh|twine|rdesktop|7z\w?", r"(?:-p|-a) ?"),
    (r"plink|pscp|psftp", r"-pw "),
    (r"ldap\w+", r"-w ?"),
    (r"mosquitto_\w+|sqlcmd|bcp|ipmitool|zip|unzip", r"-P ?"),
    (r"skopeo|crictl", r"--(?:src-|dest-)?creds[ =]{quote}?[\w.@+-]{{1,60}}:"),
    (r"smbclient|rpcclient|mount\.cifs|net", r"-U ?{quote}?[\w.@\\-]{{1,60}}%"),
    (r"lftp", r"-u ?{quote}?[\w.@-]{{1,60}},"),
    (r"openssl", r"-pass(?:in|out)? ?{quote}?pass:"),
    (r"keytool|jarsigner", r"-(?:store|key|deststore|srcstore)pass "),
    (r"ssh-keygen", r"-N "),
    (r"xfreerdp\w*|cmdkey", r"/p(?:ass)?:"),
    (r"codecov|codecov\.io/bash\)|snyk|railway|doppler", r"(?:-t|--token)[ =]"),
    (r"sqlplus|sqlldr|expdp|impdp|rman", r"[\w.-]{{1,60}}/"),
    (r"htpasswd", r"-\w*b\w* \S{{1,80}} \S{{1,60}} "),
    (r"rabbitmqctl", r"(?:add_user|change_password) \S{{1,60}} "),
    (r"wpa_passphrase|nmcli", r"(?:password |wpa_passphrase \S{{1,40}} )"),
)
_EITHER = "|".join(
    rf"(?:{command})\b{_ARGUMENTS}{option.format(quote=QUOTE)}" for command, option in _OPTIONS
)  # fmt: skip
_OPTION_HINT = r"\s--?[acdpuPwUNtbs]|/p|password |(?:_user|passphrase) |sqlplus|sqlldr|expdp|impdp|rman"
_NAMES = "|".join(command for command, _ in _OPTIONS)

RULES = (
    Rule(
        kind="password",
        pattern=rf"\b(?:{_EITHER}){QUOTE}?({IN_QUOTES}{{5,}})",
        hints=(rf"\b(?:{_NAMES})\s", _OPTION_HINT),
        check=is_argument,
        rank=2,
    ),
    Rule(
        kind="password",
        pattern=rf"(?i)(?:--?(?:\w{{1,12}}-)?(?:password|passwd|passphrase|pass|pw)\d?[ =]|sshpass\s{{1,3}}-p ?"
        rf"|identified (?:with \w+ )?by |requirepass |snmp-server community |\blogin \S{{1,60}} password )"
        rf"{QUOTE}?({IN_QUOTES}{{5,}})",
        hints=((r"(?i)--?(?:\w{1,12}-)?pass|-pw|sshpass|identified (?:with|by)|requirepass|snmp-server"
        r"|login \S+ password "),),
        check=is_password,
        rank=2,
    ),
    Rule(
        kind="password",
        pattern=rf"(?i)(?-i:PASSWORD)\s{{1,2}}'([^'\r\n\x00-\x1f]{{4,60}})'|identified (?:with \w+ )?by "
        rf"{QUOTE}([^'\"\r\n\x00-\x1f]{{4,60}}){QUOTE}",
        hints=(r"(?i)(?-i:PASSWORD)\s{1,2}'|identified (?:with|by)",),
        check=is_sql_password,
        rank=2,
    ),
    Rule(
        kind="password",
        pattern=rf"\becho (?:-\w )?{QUOTE}?(?:[\w.-]{{1,40}}:)?({IN_QUOTES}{{4,}}){QUOTE}?\s?\|\s?[^\r\n|]{{0,80}}?"
        r"(?:sudo -\w*S|--password-stdin|passwd --stdin|chpasswd|sshpass|cryptsetup|--passphrase-fd 0)",
        hints=(r"\becho ", "sudo -|-stdin|chpasswd|sshpass|cryptsetup|passphrase-fd"),
        check=is_argument,
        rank=2,
    ),
    Rule(
        kind="password",
        pattern=rf"(?i)\bnet user \S{{1,40}} ({IN_QUOTES}{{5,}})(?:\s/|\s*$)"
        rf"|ConvertTo-SecureString\s{{1,2}}(?:-String\s)?{QUOTE}([^\"'\r\n\x00-\x1f]{{4,80}}){QUOTE}"
        rf"|nickserv[^\r\n]{{0,20}}?identify\s(?:\S{{1,30}}\s)?({IN_QUOTES}{{5,}})",
        hints=(r"(?i)\bnet user |ConvertTo-SecureString|nickserv",),
        check=is_password,
        rank=2,
    ),
    Rule(
        kind="secret",
        pattern=rf"\s(?:-[pPwat] ?|--auth[ =]){QUOTE}?([A-Za-z0-9_.:-]{{12,}})|\s-u ([A-Za-z0-9_-]{{16,}}):",
        hints=(_OPTION_HINT, MIXED),
        check=is_random,
        rank=3,
    ),
    Rule(
        kind="password",
        pattern=rf"(?i)\bnet use\b[^\r\n]{{0,80}}?\s(?:{QUOTE}?({IN_QUOTES}{{4,}}){QUOTE}?\s/user:"
        rf"|/user:\S{{1,60}} ({IN_QUOTES}{{4,}}))",
        hints=(r"(?i)\bnet use\b",),
        check=is_argument,
        rank=2,
    ),
)  # fmt: skip
