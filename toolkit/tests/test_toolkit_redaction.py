"""Redaction: secrets vanish, innocent texts stay, and a text around its secrets stays as it was."""

import json
import random
import string
from urllib.parse import quote

import ahocorasick_rs
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from beaver_hostspecs import Secret
from beaver_hostspecs.scrubbing import Scrubber
from beaver_toolkit.redaction import numbers, rule_set
from beaver_toolkit.redaction.held_secrets import HeldSecrets
from beaver_toolkit.redaction.randomness import is_random, is_varied
from beaver_toolkit.redaction.redactor import Finding, Policy, Redacted, Redactor
from beaver_toolkit.redaction.rule_set import BYTES_PER_CANDIDATE, FEW
from beaver_toolkit.redaction.vendors import TOKENS, kind_of

REDACTOR = Redactor()
WORD = string.ascii_letters + string.digits


def made_up(seed, length, alphabet=WORD):
    """Return a made-up run that is the same in every test run."""
    return "".join(random.Random(seed).choices(alphabet, k=length))


def web_token():
    return "eyJ" + made_up("head", 20) + ".eyJ" + made_up("body", 40) + "." + made_up("sign", 40)


SECRETS = {
    "anthropic key": "sk-ant-api03-" + made_up("a", 60),
    "openai key": "sk-proj-" + made_up("b", 60),
    "github token": "ghp_" + made_up("c", 36),
    "gitlab token": "glpat-" + made_up("d", 20),
    "npm token": "npm_" + made_up("e", 36),
    "hugging face token": "hf_" + made_up("f", 34),
    "sendgrid key": "SG." + made_up("g", 22) + "." + made_up("h", 43),
    "slack token": "xoxb-" + made_up("i", 40),
    "stripe key": "sk_live_" + made_up("j", 24),
    "google api key": "AIza" + made_up("k", 35),
    "aws access key": "AKIA" + made_up("l", 16, string.ascii_uppercase + string.digits),
    "web token": web_token(),
    "token": "acme_live_" + made_up("m", 32),
    "telegram token": "712345678:AA" + made_up("n", 33),
    "account number": "DE89 3704 0044 0532 0130 00",
    "card number": "4111 1111 1111 1111",
}
PLACES = {
    "alone": "{}",
    "quotes": 'x = "{}"',
    "JSON": None,
    "URL": "https://api.example.org/v1?k={}&page=2",
    "code fence": "```\n{}\n```",
    "Chinese": "请使用{}登录测试环境",
    "sentence": "Use {}, please.",
    "brackets": "<{}>",
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", SECRETS)
def test_secrets_vanish_wherever_they_stand(kind, place):
    """A secret of a known format is replaced by its kind, and the text around it stays."""
    frame = PLACES[place] or json.dumps({"text": "line\n{}\n"}).replace("{", "{{", 1)[:-1] + "}}"
    secret = quote(SECRETS[kind], safe="") if place == "URL" and " " not in SECRETS[kind] else SECRETS[kind]
    expected = Redacted(text=frame.format(f"[redacted: {kind}]"), findings=(Finding(kind=kind, count=1),))
    assert expected == REDACTOR.redact(frame.format(secret))


SENTENCES = {
    "password=hunter2": "password=[redacted: password]",
    '{"password": "Tr0ub4dor&3"}': '{"password": "[redacted: password]"}',
    "passwd: 'swordfish'": "passwd: '[redacted: password]'",
    "my password is hunter2": "my password is [redacted: password]",
    "My wifi password is swordfish, don't forget": "My wifi password is [redacted: password], don't forget",
    "the password for the router was set to Fischbr0t!": "the password for the router was set to [redacted: password]",
    "das Passwort lautet hunter2": "das Passwort lautet [redacted: password]",
    "Mein Kennwort für die Bank ist geheim99": "Mein Kennwort für die Bank ist [redacted: password]",
    "密码是 hunter2": "密码是 [redacted: password]",
    "服务器的密码改成了Qwer!2026，请记住": "服务器的密码改成了[redacted: password]，请记住",
    "postgres://admin:s3cret9@db/app": "postgres://admin:[redacted: password of an address]@db/app",
    "psql 'postgres://admin:p4ss/w0rd@db/app'": "psql 'postgres://admin:[redacted: password of an address]@db/app'",
    f"Authorization: Bearer {made_up('o', 32)}": "Authorization: Bearer [redacted: authorization header]",
    f"Cookie: sid={made_up('p', 32)}": "Cookie: [redacted: cookie]",
    f"api_key = '{made_up('q', 32, '0123456789abcdef')}'": "api_key = '[redacted: secret]'",
    f"the token of the CI is {made_up('r', 40)}": "the token of the CI is [redacted: secret]",
    f"https://hooks.slack.com/services/T0/B1/{made_up('s', 24)}": "https://hooks.slack.com/services/[redacted: webhook]",
    f"AccountKey={made_up('t', 86)}==;": "AccountKey=[redacted: azure key];",
    "curl -u ada:l0velace! https://example.org": "curl -u ada:[redacted: password] https://example.org",
    f"aws_secret_access_key={made_up('v', 40)}": "aws_secret_access_key=[redacted: aws secret key]",
    '"passwd": "swordfish"': '"passwd": "[redacted: password]"',
    "用“hunter22”作为密码": "用“[redacted: password]”作为密码",
    "use hunter22 as the password": "use [redacted: password] as the password",
    "The PIN for the door is 4821.": "The PIN for the door is [redacted: code].",
    "recovery codes: a1b2c-3d4e5 f6g7h-8i9j0": "recovery codes: [redacted: recovery code]",
    "db.example.org:5432:app:ada:PgS3cret77": "db.example.org:5432:app:ada:[redacted: password]",
    "WIFI:S:home;T:WPA;P:blauwal42;;": "WIFI:S:home;T:WPA;P:[redacted: password];;",
    f"see {made_up('w', 40)}.": "see [redacted: token].",
    f"npm_{'EXAMPLE' * 4}": "[redacted: npm token]",
    "mysqldump -u root -pTannen_88 shop": "mysqldump -u root -p[redacted: password] shop",
    "echo 'Wald&Wiese9' | docker login --password-stdin": "echo '[redacted: password]' | docker login --password-stdin",
    "net use Z: Linde-Allee12 /user:ada": "net use Z: [redacted: password] /user:ada",
    "CREATE ROLE app PASSWORD 'mondschein';": "CREATE ROLE app PASSWORD '[redacted: password]';",
    "IDENTIFIED BY 'Torf.Moos77'": "IDENTIFIED BY '[redacted: password]'",
    "<password>fe%h1tq5Kg</password>": "<password>[redacted: password]</password>",
    "define('DB_PASSWORD', 'moosbeere7');": "define('DB_PASSWORD', '[redacted: password]');",
    "POSTGRES_PASSWORD: hirsch-im-moor": "POSTGRES_PASSWORD: [redacted: password]",
    "X_PASSPHRASE='vier Reiher am Wehr'": "X_PASSPHRASE='[redacted: pass phrase]'",
    'SECRET_KEY = "7f$g3k+^_w7gu*^5hnR2d"': 'SECRET_KEY = "[redacted: secret]"',
    "redis://default:swordfish@cache:6379/0": "redis://default:[redacted: password of an address]@cache:6379/0",
    "Server=db;User Id=sa;Password=swordfish;": "Server=db;User Id=sa;Password=[redacted: password];",
    "https://bob:kaninchen@corp.net/x": "https://bob:[redacted: password of an address]@corp.net/x",
    "mysql://root:Gr4nit.stein@db/kasse": "mysql://root:[redacted: password of an address]@db/kasse",
    "the old password failed, it's rosebud77 now": "the old password failed, it's [redacted: password] now",
    "pw for the box: quokka-lamp-52": "pw for the box: [redacted: password]",
    "die Kiste will ein Passwort, nimm da amsel4812": "die Kiste will ein Passwort, nimm da [redacted: password]",
    "登录密码换成了 Haus#88": "登录密码换成了 [redacted: password]",
    "Your verification code is 381 704.": "Your verification code is [redacted: code].",
    "PUK1 48201937": "PUK1 [redacted: code]",
    "验证码为 605283": "验证码为 [redacted: code]",
    "CVV 318": "CVV [redacted: card code]",
    "Seed (12): apple brave candle delta eagle fabric garden hazard island jungle kitten ladder": (
        "Seed (12): [redacted: seed phrase]"
    ),
    "nimm den Backup-Code cayv-ul1n-1qvw": "nimm den Backup-Code [redacted: recovery code]",
    "BitLocker: " + "-".join(["184615"] * 8): "BitLocker: [redacted: recovery key]",
    "otpauth://totp/A:b?secret=JBSWY3DPEHPK3PXP": "otpauth://totp/A:b?[redacted: one-time secret]",
    "license: P9BH-KBY6-UTOA-T7R3": "license: [redacted: license key]",
    f'Client("{"12ab34cd" * 4}")': 'Client("[redacted: secret]")',
    'smtp.login("noreply", "kHRZk4GH-BjxX1")': 'smtp.login("noreply", "[redacted: password]")',
    "our seed phrase is apple brave candle delta eagle": "our seed phrase is [redacted: pass phrase]",
    "const adminPass = 'jgVGzunIub7epWuS';": "const adminPass = '[redacted: password]';",
    "page.fill('#password', 'Linde-5885')": "page.fill('#password', '[redacted: password]')",
    'password "xhiv gwfs zgtr dyjl"': 'password "[redacted: password]"',
    "Das App-Passwort für die Post ist xhiv gwfs zgtr dyjl": "Das App-Passwort für die Post ist [redacted: password]",
    "username ada password 7 114684B0DE92FFD9": "username ada password 7 [redacted: password]",
    "--auth-password ihhlwlupfkycmlxt": "--auth-password [redacted: password]",
    "sqlplus shop/Linde.Allee12@//ora:1521/S": "sqlplus shop/[redacted: password]",
    "net user ada Linde-Allee12 /add": "net user ada [redacted: password] /add",
    "ConvertTo-SecureString 'Linde-Allee12' -Force": "ConvertTo-SecureString '[redacted: password]' -Force",
    "/msg NickServ IDENTIFY ada Linde-Allee12": "/msg NickServ IDENTIFY ada [redacted: password]",
    f"rcon -p {made_up('rc', 16)} list": "rcon -p [redacted: secret] list",
    f"curl -u {made_up('cu', 24)}: https://api.example.org": "curl -u [redacted: secret]: https://api.example.org",
    "pw's Torf*Moos4 btw": "pw's [redacted: password] btw",
    "I changed my login again, it's torf-9-moos now": "I changed my login again, it's [redacted: password] now",
    "ist das Kennwort von Ada immer noch mops&mieze3?": "ist das Kennwort von Ada immer noch [redacted: password]",
    "Ich komme mit Torfmoos2019 ins WLAN": "Ich komme mit [redacted: password] ins WLAN",
    "the password went from the old one to torfmoos77": "the password went from the old one to [redacted: password]",
    "My phone unlocks with 7318.": "My phone unlocks with [redacted: code].",
    "Der Code fürs Garagentor lautet 60417.": "Der Code fürs Garagentor lautet [redacted: code].",
    "SIM entsperren: gib 2917 ein": "SIM entsperren: gib [redacted: code] ein",
    "G-492817 ist dein Bestätigungscode.": "[redacted: code] ist dein Bestätigungscode.",
    "the code from the authenticator: 30 57 14, quick": "the code from the authenticator: [redacted: code], quick",
    "取款密码520916,记住": "取款密码[redacted: code],记住",
    "门锁密码换成4096了": "门锁密码换成[redacted: code]了",
    "card 4111.1111.1111.1111, refund": "card [redacted: card number], refund",
    "pyotp.TOTP('GEAVINJLFVPHWUBV')": "pyotp.TOTP('[redacted: one-time secret]')",
    "Enter this key: mgaz 6ou2 bhlk 77hv o6tq yjfy": "Enter this key: [redacted: one-time secret]",
    f"NotesAPI('{'12ab34cd' * 5}')": "NotesAPI('[redacted: secret]')",
    "https://hooks.zapier.com/hooks/catch/48219/bolqu0z": "https://hooks.zapier.com/hooks/catch/48219/[redacted: webhook]",
    f"https://example.org/key/{made_up('pk', 22)}": "https://example.org/key/[redacted: token of an address]",
    f'{{"kty": "EC", "d": "{made_up("jwk", 43)}"}}': '{"kty": "EC", "d": "[redacted: private key]"}',
    f"nsec1{'qpzry9x8gf' * 6}": "[redacted: nostr key]",
    f"see sha256~{made_up('o1', 20)}-{made_up('o2', 22)}": "see [redacted: token]",
    f'accounts: ["{"12ab34cd" * 8}"]': 'accounts: ["[redacted: ethereum key]"]',
    f"NewMailgun('{'12ab34cd' * 4}-12ab34cd-12ab34cd')": "NewMailgun('[redacted: mailgun key]')",
}


@pytest.mark.parametrize("text", SENTENCES)
def test_named_secrets_vanish_from_sentences_and_fields(text):
    """A sentence or a field that names a secret keeps its words, without the secret."""
    assert SENTENCES[text] == REDACTOR.redact(text).text


PEM = "\n".join(
    ["-----BEGIN OPENSSH PRIVATE KEY-----", *(made_up(at, 64) for at in range(5)), "-----END OPENSSH PRIVATE KEY-----"]
)


@pytest.mark.parametrize("key", [PEM, PEM.replace("\n", "\\n"), PEM[:250]], ids=["lines", "one line", "cut"])
def test_private_keys_vanish_whole(key):
    """A private key vanishes with its first and its last line, and as well if it is cut."""
    assert "see [redacted: private key]" == REDACTOR.redact(f"see {key}").text


INNOCENT = [
    "The password is required.",
    "My password was changed yesterday.",
    "Das Passwort ist zu kurz.",
    "密码不能为空",
    "password = getpass.getpass()",
    "def login(password: str, token=None) -> None:",
    'api_key = os.environ["API_KEY"]',
    "postgres://user:password@host/db and postgres://$USER:$PASSWORD@host/db",
    "Authorization: Bearer <token>",
    "commit 2fd4e1c67a2d28fced849ee1bb76e7391b93eb12",
    "cache_key = 'user_profile_settings_v2'",
    "密码是 password",
    '"password": "required"',
    "IBAN GB82 WEST 1234 56, NO93 8601 1117 94",
    "order 4111 1111 1111 1112 of 0.4242424242424242",
    "DE89 3704 0044 0532 0130 01",
    "-----BEGIN RSA PRIVATE KEY----- begins a file.",
    "ada@example.org, +49 30 901820",
    "npm_config_registry and sk-learn and task-force",
    "docker run -p 8080:80 nginx:1.25 and docker login -p '$PASS'",
    "IDENTIFIED BY '<password>' and PASSWORD '${DB_PASSWORD}'",
    "POSTGRES_PASSWORD: change-me-please",
    "password: op://prod/postgres/password",
    "password = settings.DB2_PASSWORD",
    "<password>secret</password>",
    "define('DB_PASSWORD', getenv('DB_PASSWORD'));",
    "the password hash now uses sha256, use utf8mb4 and 12-character words",
    "passphrase: 'Please enter the passphrase for key 1'",
    "The status code is 5003, the zip code: 90210, the door opens with a key.",
    "A seed phrase has 12 words; it should be kept off every computer that you own.",
    f"request id req_{made_up('x', 24)} and in_{made_up('y', 24)}",
    f"PublicKey = {made_up('z', 43)}=",
    f"-----BEGIN CERTIFICATE-----\n{made_up('c1', 64)}\n{made_up('c2', 64)}\n-----END CERTIFICATE-----",
    'secret_pattern = r"[a-z0-9_]{20,}(?:x)$@!"',
    "pass: 12 tests, passed=14, passage=2",
    "Invalid client secret. Trace ID: 0d7c1f42-0f3e-44a5-a6f7-7b31f0c23e00",
    f"the token is that of sha256:{'12ab34cd' * 8}",
    f"ssh-ed25519 AAAA{made_up('ssh', 60)} ada",
    f"integrity='sha384-{made_up('sri', 30)}'",
    "password: this must have four",
    "The error code for the run is 500214.",
    "密码至少8位，密码2026年改过",
    "",
]


@pytest.mark.parametrize("text", INNOCENT)
def test_innocent_texts_stay(text):
    """A text without secrets stays as it is."""
    assert Redacted(text=text) == REDACTOR.redact(text)


def test_findings_are_counted_by_kind():
    """Findings name kinds and numbers, sorted, and no text."""
    text = f"{SECRETS['github token']} password=hunter2 {SECRETS['npm token']} pw: s3same!"
    expected = (
        Finding(kind="github token", count=1), Finding(kind="npm token", count=1), Finding(kind="password", count=2),
    )  # fmt: skip
    assert (expected, expected) == (REDACTOR.find(text), REDACTOR.redact(text).findings)


def test_people_are_redacted_if_the_policy_wants_it():
    """E-mail addresses and phone numbers are secrets where the policy says so."""
    redactor = Redactor(Policy(emails=True, phones=True))
    expected = Redacted(
        text="[redacted: e-mail address] or [redacted: phone number]",
        findings=(Finding(kind="e-mail address", count=1), Finding(kind="phone number", count=1)),
    )
    assert expected == redactor.redact("ada@example.org or +49 30 901820")


def test_held_secrets_vanish_in_every_shape():
    """A secret that the process holds vanishes as it is, reversed and encoded, also if it became known later."""
    scrubber = Scrubber()
    redactor = Redactor(held=HeldSecrets(scrubber))
    first, second = made_up("held", 20, string.ascii_lowercase), made_up("later", 20, string.ascii_lowercase)
    before = redactor.redact(f"{first} {second}").text
    scrubber.remember(first)
    one = redactor.redact(f"{first} {second} {first[::-1]} {first.encode().hex()}").text
    scrubber.remember(second)
    both = redactor.redact(f"{first} {second}")
    mask = "[redacted: held secret]"
    assert (f"{first} {second}", f"{mask} {second} {mask} {mask}", (Finding(kind="held secret", count=2),)) == (
        before, one, both.findings,
    )  # fmt: skip


def test_redactors_share_what_looks_for_held_secrets(monkeypatch):
    """It is built once for a process that holds new secrets, however many redactors it makes."""
    built, real = [], ahocorasick_rs.BytesAhoCorasick
    monkeypatch.setattr(ahocorasick_rs, "BytesAhoCorasick", lambda needles: built.append(1) or real(needles))
    secret = Secret(made_up("shared", 20, string.ascii_lowercase))
    texts = {Redactor().redact(secret.reveal()).text for _ in range(3)}

    assert ({"[redacted: held secret]"}, [1]) == (texts, built)


def test_a_secret_of_the_contract_is_held():
    """A `Secret` of the contract is known to every redactor of the process."""
    secret = Secret(made_up("contract", 24, string.ascii_lowercase))
    assert "[redacted: held secret]" == Redactor().redact(secret.reveal()).text


def test_any_text_survives():
    """Lone surrogates, NUL and masks pass unchanged."""
    text = "a\ud800 \0 [redacted: password] password=[redacted: password]"
    assert Redacted(text=text) == REDACTOR.redact(text)


PIECES = st.sampled_from(
    [
        *SECRETS.values(),
        *SENTENCES,
        *INNOCENT,
        "[redacted: password]",
        "password=",
        "key: ",
        "\n",
        '"',
        "'",
        "\\n",
        " ",
        "是",
        "://",
        "@",
        "a",
    ]
)


BOT = SECRETS["telegram token"]


@example(BOT + BOT)
@given(st.lists(PIECES | st.text(max_size=6), max_size=12).map("".join))
def test_redaction_is_idempotent(text):
    """A redacted text is not changed by redacting it again."""
    once = REDACTOR.redact(text)
    assert Redacted(text=once.text) == REDACTOR.redact(once.text)


@given(
    st.text(alphabet=st.characters(exclude_categories=["Nd", "Cs"]), max_size=60),
    st.sampled_from(sorted(SECRETS)),
    st.text(max_size=5),
)
def test_planted_secrets_vanish(before, kind, after):
    """No planted secret is left, whatever stands around it."""
    secret = SECRETS[kind]
    assert secret not in REDACTOR.redact(f"{before} {secret} {after}").text


@given(st.text(alphabet="abc xyz.,\n()", max_size=200))
def test_plain_words_stay(text):
    """A text of plain words stays as it is."""
    assert text == REDACTOR.redact(text).text


@pytest.mark.parametrize(
    "piece", ["password=abcd1 ", "token: a1B2c3D4e5F6g7H8 ", "4111 1111 1111 1112 ", "my password is word1 "]
)
def test_the_number_of_checks_is_bounded_by_the_length(piece):
    """A hostile text costs each rule a number of checks that grows with its length; what follows them is masked."""
    text = piece * 4_000
    data = text.encode()
    found = [len(list(rule.spans(data))) for rule in rule_set.rule_set().of(data)]
    assert max(found) <= FEW + len(text) // BYTES_PER_CANDIDATE + 1
    assert REDACTOR.redact(text).text.endswith("]")


def test_kinds_are_plain_nouns():
    """Each kind of a vendor is a short noun that a mask can hold, and its mark names it."""
    kinds = {each.kind for each in TOKENS}
    assert all(kind == kind.lower() and kind.isascii() and len(kind) <= 40 for kind in kinds)
    assert ("github token", "token") == (kind_of(b"ghp_x"), kind_of(b"unknown"))


def test_randomness():
    """Digits among letters tell a key from words; a name lowers the bar."""
    texts = [
        b"a1B2c3D4e5F6g7",
        b"camelCaseIdentifierName",
        b"version2release",
        b"0123456789abcdef",
        b"short1",
        b"1234567890123",
    ]
    assert [(True, True), (False, False), (False, False), (False, True), (False, False), (False, False)] == [
        (is_random(each), is_varied(each)) for each in texts
    ]


@given(st.integers(min_value=4 * 10**14, max_value=5 * 10**14 - 1))
def test_one_of_ten_endings_makes_a_card(number):
    """Exactly one last digit makes a card number of any fifteen digits."""
    assert 1 == sum(numbers.is_card(str(number * 10 + last).encode()) for last in range(10))
