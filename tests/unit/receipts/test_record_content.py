"""A plugin that puts prompts, answers and ids of people into everything it can: no store keeps any of it."""

import asyncio
import logging
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beaver_hooks import Host
from beaver_hooks.audit.memory_sink import MemorySink
from beaver_hostspecs import Actors, Contribution, Personal, PluginUnavailable, Reference, hookimpl
from beaver_hostspecs.testing import traces

PROMPT = "Where did Ada Lovelace leave\nthe green umbrella of her aunt?"
IDS = {
    "session": "session-of-ada-1815",
    "conversation": "conversation-with-ada",
    "user": "ada.lovelace@example.org",
}
ACTORS = Actors(speaker="telegram:778899", subject="charles.babbage")


class Gossip:
    """Puts all texts that it knows into every report and answer."""

    def __init__(self, secret=""):
        self.secret = secret

    @hookimpl
    async def before_prompt(self, turn, report):
        self.gossip(turn, report)
        texts = self.known(turn)
        return Contribution(references=[Reference(text="an umbrella", id=each) for each in texts])

    @hookimpl
    async def on_tool_result(self, turn, result, report):
        self.gossip(turn, report)
        raise ValueError(" and ".join(self.known(turn)))

    @hookimpl
    async def after_prompt(self, turn, answer, report):
        self.gossip(turn, report)
        raise type(turn.session, (Exception,), {})(turn.prompt)

    def known(self, turn):
        actors = (turn.actors.speaker, turn.actors.subject)
        one_line = " ".join(turn.prompt.split())
        return (turn.prompt, one_line, turn.session, turn.conversation, turn.user, *actors, self.secret or "none")

    def gossip(self, turn, report):
        for text in self.known(turn):
            report.event(text, text=text, inside=f"it was '{text}'", several=[text, text], who=Personal(value=text))
            report.event("named", **{text: 1})
            report.candidates([(text, 0.5), (f"id-{text}", 0.4)])
            report.decision(text, f"not {text}", f"because of {text}")
            report.outcome(f"plane of {text}", "failed", text=text)
            report.outcome(text, "unknown", **{text: text})
            report.clipped(f"part of {text}", 1, 2)
            report.degraded(f"no {text}")
        report.event("excerpt", text=turn.prompt[:24], also=turn.prompt[10:50])


async def gossip_through(state, sink, secret=""):
    """Run two turns with the plugin; return every text of the host about them."""
    said = []
    async with Host({"gossip": Gossip(secret)}, state_folder=state, sinks=[sink]) as host:
        for number in range(2):
            prompt = f"{PROMPT} {secret}".strip()
            turn = await host.open_turn(prompt, id=f"their-own-id-{number}", actors=ACTORS, **IDS)
            await turn.tool_result(tool="search", call_id="c1", output=prompt, error=None, arguments={"q": prompt})
            await turn.commit(f"You asked: {prompt}")
            await host.drain()
            said += [repr(turn.receipt), repr(await host.receipt(turn.id))]
        said += [repr(host.health()), repr(host.trail.tail(1000)), repr(host.trail.health())]
        assert host.trail.verify().ok
    return [*said, repr(sink.events)]


def stored(state):
    """Return every byte of every file in the state folder."""
    return [path.read_bytes().decode("utf-8", "replace") for path in sorted(state.rglob("*")) if path.is_file()]


NEEDLES = [
    PROMPT, " ".join(PROMPT.split()), PROMPT[:24], PROMPT[12:50], "their-own-id",
    *IDS.values(), ACTORS.speaker, ACTORS.subject,
]  # fmt: skip


def variants(needle):
    """Return the forms of a needle after names, JSON or a repr changed some of its characters."""
    plain = needle.replace("\n", " ")
    under = "".join(each if each.isalnum() else "_" for each in needle)
    return {needle, plain, under, under.replace("__", "_"), repr(needle)[1:-1], needle.replace("\n", "\\\\n")}


@pytest.mark.shows("000-101")
async def test_nothing_that_was_said_is_kept(tmp_path, caplog):
    """Trail, receipts, health, further sinks, files and the log hold hashes where a plugin put content and people."""
    caplog.set_level(logging.DEBUG, "beaver_hooks")
    sink = MemorySink()
    texts = await gossip_through(tmp_path / "state", sink)
    texts += stored(tmp_path / "state") + caplog.messages

    found = {needle for needle in NEEDLES for text in texts for shape in variants(needle) if shape in text}
    assert found == set()
    assert len(sink.named("named")) == 2 * 3 * 8
    assert len(sink.named("plugin_failed")) == 4


@pytest.mark.shows("000-101")
async def test_no_secret_is_kept(tmp_path, caplog, canary):
    """A secret in the prompt, in facts and in errors shows nowhere, and the rest of the prompt neither."""
    caplog.set_level(logging.DEBUG, "beaver_hooks")
    texts = await gossip_through(tmp_path / "state", MemorySink(), canary.reveal())
    texts += stored(tmp_path / "state") + caplog.messages

    assert [found for text in texts if (found := traces(canary.reveal(), text))] == []
    assert [text for text in texts if "green umbrella" in text or "green_umbrella" in text] == []


CANARY = "qzxjvwkp"
NO_CODE = st.characters().filter(lambda each: not (each.isascii() and (each.isalnum() or each in "_.:/+-")))
FREE_TEXTS = st.tuples(st.text(), NO_CODE | st.just("x" * 64), st.text()).map(
    lambda parts: CANARY.join(["", *parts, ""])
)


class Talker:
    """Puts a text into every report, name, id and error."""

    def __init__(self, text):
        self.text = text

    @hookimpl
    async def before_prompt(self, turn, report):
        text = self.text
        report.event(text, **{text: [text, (text,)], "who": Personal(value=text)})
        report.candidates([(text, 1.0)])
        report.decision(text, text, text)
        report.outcome(text, "failed", **{text: text})
        report.clipped(text, 1, 2)
        report.degraded(text)
        return Contribution(references=[Reference(text="an umbrella", id=text)])

    @hookimpl
    async def after_prompt(self, turn, answer, report):
        report.event("late", error=ValueError(self.text))
        raise ValueError(self.text)


class Lines(logging.Handler):
    """Keeps the lines of the log."""

    def __init__(self):
        super().__init__(logging.DEBUG)
        self.lines = []

    def emit(self, record):
        self.lines.append(record.getMessage())


async def talk(text):
    """Run a turn with a talker; return everything that the host and its files have about it."""
    sink, log, logger = MemorySink(), Lines(), logging.getLogger("beaver_hooks")
    level = logger.level
    logger.setLevel(logging.DEBUG)
    logger.addHandler(log)
    try:
        with tempfile.TemporaryDirectory() as folder:
            async with Host({"talker": Talker(text)}, state_folder=Path(folder) / "state", sinks=[sink]) as host:
                async with host.turn("hi", session="s") as turn:
                    await turn.commit("hello")
                await host.drain()
                known = [repr(turn.receipt), repr(await host.receipt(turn.id)), repr(host.health())]
                host.record("asked", about=text)
            return [*known, *stored(Path(folder)), repr(sink.events), *log.lines], sink
    finally:
        logger.removeHandler(log)
        logger.setLevel(level)


@pytest.mark.shows("000-101")
@given(FREE_TEXTS)
@settings(max_examples=settings.default.max_examples // 4)
def test_no_free_text_is_kept(text):
    """Whatever text a plugin reports, raises or uses as a name, only a code stays: no store and no log has another one."""
    known, sink = asyncio.run(talk(text))

    assert [each for each in known if CANARY in each] == []
    assert {"plugin_failed", "plugin_degraded", "turn_committed"} < {each.name for each in sink.events}


class Absent:
    """Gives a reason with too much content for not starting."""

    def __init__(self, reason):
        self.reason = reason

    @hookimpl
    def configure(self):
        raise PluginUnavailable(self.reason)


async def test_no_secret_is_in_the_reason_of_a_plugin(tmp_path, canary):
    """A plugin's reason for not starting is scrubbed."""
    async with Host(state_folder=tmp_path / "state") as host:
        with pytest.raises(PluginUnavailable) as caught:
            await host.register("absent", Absent(f"the key {canary.reveal()} is wrong"))

    assert str(caught.value) == "the key [secret] is wrong"


async def test_a_turn_without_content_is_told_as_it_is(tmp_path):
    """Content-free facts of a plugin are stored unchanged."""

    class Decent:
        @hookimpl
        async def before_prompt(self, turn, report):
            report.event("recalled", items=3, plane="disk", share=0.5, full=False, ids=["n1", "n2"])

    when = datetime(2026, 1, 2, tzinfo=UTC)
    async with Host({"decent": Decent()}, state_folder=tmp_path / "state") as host:
        turn = await host.open_turn("hi", session="s", when=when)
        await turn.commit("hello")
        await host.drain()
        host.trail.flush()
        (event,) = [each for each in host.trail.tail() if each.name == "recalled"]

    assert (event.plugin, event.hook, event.turn) == ("decent", "before_prompt", turn.id)
    assert event.facts == {"items": 3, "plane": "disk", "share": 0.5, "full": False, "ids": ["n1", "n2"]}
