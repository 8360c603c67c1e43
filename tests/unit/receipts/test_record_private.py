"""What a text gives away of a turn: trivial changes hide nothing, and honest facts stay."""

import json
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaver_hooks import Host
from beaver_hooks.audit.memory_sink import MemorySink
from beaver_hooks.receipts.private_texts import HORIZON, PrivateTexts, words_of
from beaver_hostspecs import Actors, Contribution, Message, Reference, hookimpl
from beaver_hostspecs.testing import make_turn

PROMPT = 'Where did Zoë Lovelace leave\nthe green umbrella, and does "Tom" know it\'s hers?'
TURN = make_turn(
    prompt=PROMPT,
    session="session-77",
    conversation="talk",
    user="zoe@example.org",
    actors=Actors(speaker="telegram:778899", subject="kim"),
    history=(Message(role="user", text="My landlord is called Mister Crumble."),),
)

DISGUISES = [
    PROMPT,
    PROMPT.lower(),
    PROMPT.upper(),
    f"prefix: {PROMPT}",
    f"no answer to '{PROMPT.casefold()}' so far",
    repr(PROMPT),
    ascii(PROMPT),
    json.dumps({"q": PROMPT}),
    repr(json.dumps(PROMPT)),
    quote(PROMPT),
    quote_plus(PROMPT),
    " ".join(PROMPT.split()[:3]),
    " ".join(PROMPT.split()[4:9]),
    'ValueError("did Zo\\u00eb Lovelace")',
    PROMPT.replace(" ", "_"),
    PROMPT.replace(" ", "-")[:30],
    "".join(PROMPT.split())[:30],
    "wh\u200bere d\u00adid zoe\u0308 love\u2060lace",
    "\uff37\uff28\uff25\uff32\uff25 did zo\u00eb",
    PROMPT[7:31],
]  # fmt: skip


@pytest.mark.parametrize("text", DISGUISES)
def test_disguises_of_a_prompt(text):
    """Case, quotes, escapes, other separators, a prefix or an excerpt hide no prompt."""
    assert PrivateTexts.of(TURN).is_in(text)


@pytest.mark.parametrize(
    "text",
    [
        "session-77", "SESSION-77", "id:session-77/chunk-3", "session%2D77", "talk", "the talk is over",
        "zoe@example.org", "mailto:Zoe@Example.Org", "zoe example org", "telegram:778899", "telegram_778899",
        "kim", "Kim was here", "my landlord is called", "their-own-id", "x" * 65,
    ],
)  # fmt: skip
def test_people_and_history(text):
    """Ids are found in either case and within longer texts, short ones as whole words; so are texts of the history."""
    assert PrivateTexts.of(TURN, "their-own-id").is_in(text)


HONEST = [
    "", "?", "no backend configured", "HTTP 503 from gateway", "timeout", "disk_failed", "2026-01-02T12:00:00+00:00",
    "n1", "beaver_memory.store:120", "a reference is longer than what is left", "h:0123456789abcdef01234567/12",
    "kimono", "talkative", "the green", "/srv/agent/.beaver/plugins/local/memory.db", "budget", "100%", "C:\\new",
    "0f8fad5b-d9cb-469f-a165-70867728950e", "läuft nicht",
]  # fmt: skip


@pytest.mark.parametrize("text", HONEST)
def test_honest_facts(text):
    """A plugin's own labels, ids, paths, numbers and sentences do not count as private texts."""
    assert not PrivateTexts.of(TURN).is_in(text)
    assert not PrivateTexts().is_in(text)


def test_short_prompts():
    """A prompt of a word or two is found as a whole, within longer texts only if that can hardly be chance."""
    hi, password, odd = (PrivateTexts.of(make_turn(prompt=each, session="s")) for each in ("hi", "hunter2 ok", "🔑🔑"))

    assert (hi.is_in("Hi!"), hi.is_in("this is hidden"), hi.is_in("s"), hi.is_in("it's on")) == (
        True, False, True, False,
    )  # fmt: skip
    assert (password.is_in("pw=Hunter2_OK;"), password.is_in("hunter"), odd.is_in("🔑🔑"), odd.is_in("🔑")) == (
        True, False, True, False,
    )  # fmt: skip


def test_scripts_without_spaces():
    """Three characters of Chinese are a run, and two are not; an excerpt shows in a longer text."""
    private = PrivateTexts.of(make_turn(prompt="我把绿色的雨伞忘在哪里了", session="s-123456"))

    assert [private.is_in(text) for text in ("绿色的", "error: 雨伞忘在", "雨伞")] == [True, True, False]


def test_secrets_in_a_prompt(canary):
    """A prompt is known with its secrets masked, and one that is nothing but a secret makes no other text private."""
    private = PrivateTexts.of(make_turn(prompt=f"use {canary.reveal()} please", session="s-1", user=canary.reveal()))

    assert [private.is_in(text) for text in ("use [secret] please", "[secret]", "a secret")] == [True, False, False]


def test_what_is_said_later():
    """The answer counts from when it is known on."""
    private = PrivateTexts.of(TURN)
    before = private.is_in("he said: in the tram to Ulm")
    private.hear("In the tram to Ulm, I think.")

    assert (before, private.is_in("he said: in the tram to Ulm")) == (False, True)


def test_the_bound():
    """Both ends of a huge text and the latest messages of a long history are private; the middle is not checked."""
    middle = "nobody ever looks here"
    filling = "word " * HORIZON
    history = (Message(role="user", text="too long ago"), Message(role="user", text=filling + "beyond the end"))
    turn = make_turn(
        prompt=f"at the beginning {filling} {middle} {filling} at the end", session="session", history=history
    )
    private = PrivateTexts.of(turn)

    assert [private.is_in(text) for text in ("at the beginning", "at the end", middle, "too long ago")] == [
        True, True, False, False,
    ]  # fmt: skip


def test_a_short_history_counts_whole():
    """All messages of a short history are private."""
    turn = make_turn(
        prompt="p", session="s", history=[Message(role="user", text=f"message {n} ends") for n in range(9)]
    )

    assert all(PrivateTexts.of(turn).is_in(f"Message {n} ends") for n in range(9))


@given(st.text(), st.text())
def test_any_text_around_any_prompt(prompt, around):
    """Three words of a prompt in a row are found within any other text."""
    text = f"{around} | {prompt} | {around}"

    private = PrivateTexts(prompt, (), [prompt])
    assert private.is_in(text) or len(words_of(prompt)) < 3 or "\\" in around + prompt or "%" in around + prompt
    assert private.is_in(prompt) or not prompt.strip()


class Gossip:
    """Puts the prompt in every disguise into every report."""

    @hookimpl
    async def before_prompt(self, turn, report):
        for text in DISGUISES:
            report.event("gossip", text=text, several=[text])
            report.event(text, **{text: 1})
            report.candidates([(text, 1.0)])
            report.decision(text, text, text)
            report.outcome(text, "failed", text=text)
            report.clipped(text, 1, 2)
            report.degraded(text)
        return Contribution(references=[Reference(text="x", id=text) for text in DISGUISES])

    @hookimpl
    async def after_prompt(self, turn, answer, report):
        report.event("gossip", text=f"the answer was {answer.text.upper()}")
        raise ValueError(json.dumps(turn.prompt.lower()))


async def test_no_disguise_is_kept(tmp_path, caplog):
    """Trail, receipt, health, sinks, files and the log hold nothing of a prompt however it is dressed."""
    caplog.set_level("DEBUG", "beaver_hooks")
    sink = MemorySink()
    async with Host({"gossip": Gossip()}, state_folder=tmp_path / "state", sinks=[sink]) as host:
        turn = await host.open_turn(PROMPT, session="session-77")
        await turn.commit("She left it in the tram.")
        await host.drain()
        texts = [
            repr(turn.receipt),
            repr(await host.receipt(turn.id)),
            repr(host.health()),
            repr(host.trail.tail(1000)),
        ]
    texts += [
        path.read_bytes().decode("utf-8", "replace") for path in (tmp_path / "state").rglob("*") if path.is_file()
    ]
    texts += [repr(sink.events), *caplog.messages]

    needles = ("umbrella", "lovelace", "tram", "where did", "where_did", "wheredid")
    assert [needle for needle in needles for text in texts if needle in text.casefold()] == []


async def test_a_huge_prompt_stalls_nobody(tmp_path):
    """Many facts about a huge prompt are checked against the same few words of it, prepared once."""

    class Talker:
        @hookimpl
        async def before_prompt(self, turn, report):
            for _ in range(20):
                report.event("talked", **{f"f{number}": turn.prompt for number in range(50)})

    sink = MemorySink()
    async with Host({"talker": Talker()}, state_folder=tmp_path / "state", sinks=[sink]) as host:
        async with host.turn("all work and no play " * 250_000, session="s") as turn:
            await turn.commit("ok")
        await host.drain()

    assert {len(event.facts) for event in sink.named("talked")} == {50}
    assert {fact.endswith("/5250000") for event in sink.named("talked") for fact in event.facts.values()} == {True}
