"""Redaction: secrets vanish, innocent texts stay, and a text around its secrets stays as it was."""

import json
import random
import string
from pathlib import Path
from urllib.parse import quote

import ahocorasick_rs
import pytest
from case_files import rows, unbroken
from hypothesis import example, given
from hypothesis import strategies as st

from beaver_hostspecs import Secret
from beaver_hostspecs.scrubbing import Scrubber
from beaver_toolkit.redaction import numbers, rule_set
from beaver_toolkit.redaction.randomness import is_random, is_varied
from beaver_toolkit.redaction.redactor import Finding, HeldSecrets, Policy, Redacted, Redactor
from beaver_toolkit.redaction.rule_set import BYTES_PER_CANDIDATE, FEW
from beaver_toolkit.redaction.vendors import TOKENS, kind_of

DATA = Path(__file__).with_name("data")
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


@pytest.mark.shows("003-106")
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", SECRETS)
def test_secrets_vanish_wherever_they_stand(kind, place):
    """A secret of a known format is replaced by its kind, and the text around it stays."""
    frame = PLACES[place] or json.dumps({"text": "line\n{}\n"}).replace("{", "{{", 1)[:-1] + "}}"
    secret = quote(SECRETS[kind], safe="") if place == "URL" and " " not in SECRETS[kind] else SECRETS[kind]
    expected = Redacted(text=frame.format(f"[redacted: {kind}]"), findings=(Finding(kind=kind, count=1),))
    assert expected == REDACTOR.redact(frame.format(secret))


SENTENCES = {unbroken(text): redacted for text, redacted in rows(DATA / "sentences.jsonl", "text", "redacted")}


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


INNOCENT = [unbroken(text) for text in rows(DATA / "innocent.jsonl", "text")]


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
