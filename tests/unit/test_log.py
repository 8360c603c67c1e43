"""The log: one line per event, flat fields, nothing secret, and nothing installed by importing us."""

import logging
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaver_hooks.log import LOGGER_NAME, make_log

NAME = "beaver_hooks.log_test"


class Lines(logging.Handler):
    def __init__(self):
        super().__init__()
        self.lines = []

    def emit(self, record):
        self.lines.append(record.getMessage())


@pytest.fixture
def lines():
    handler, logger = Lines(), logging.getLogger(NAME)
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    yield handler.lines
    logger.removeHandler(handler)
    logger.setLevel(logging.NOTSET)


def python(code, cwd):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=cwd, timeout=60)


def test_a_line(lines):
    """The event comes first with the package's name, then the fields; a field that is `None` is left out."""
    make_log(NAME).warning("thing_happened", count=3, why="two words", yes=True, no=False, share=0.5, absent=None)

    assert lines == ['event=beaver_hooks.thing_happened count=3 why="two words" yes no=false share=0.5']


class Bomb:
    """Raises when it is printed."""

    def __str__(self):
        raise SystemExit

    __repr__ = __str__


def test_what_is_no_text(lines):
    """Other values are named by their type, so that no plugin's code runs while we log."""
    make_log(NAME).info(
        "thing_happened", bomb=Bomb(), error=ValueError("x"), many=[1], ids=("n 1", Bomb(), [2]), none=[]
    )

    assert lines == ['event=beaver_hooks.thing_happened bomb=Bomb error=ValueError many=1 ids="n 1,Bomb,list" none=']


@pytest.mark.shows("002-110")
def test_secrets_are_masked(lines, canary):
    """A secret shows in no field and not as the name of an event."""
    make_log(NAME).error(canary.reveal(), plain=canary.reveal(), inside=f"a{canary.reveal()}b")

    canary.assert_clean(*lines)
    assert lines == ["event=beaver_hooks.[secret] plain=[secret] inside=a[secret]b"]


def test_what_a_terminal_would_obey(lines):
    """Control characters, bidirectional marks and lone surrogates become question marks; the line stays one line."""
    make_log(NAME).info("thing_happened", text="a\x1b[31m\r\nb\u202ec\ud800é漢")

    assert lines == ["event=beaver_hooks.thing_happened text=a?[31m??b?c?é漢"]


def test_a_percent_sign_is_no_format(lines):
    """A text is never taken for a format."""
    make_log(NAME).info("thing_happened", share="100%s %d")

    assert lines == ['event=beaver_hooks.thing_happened share="100%s %d"']


@given(st.dictionaries(st.from_regex(r"[a-z_]{3,8}", fullmatch=True), st.text() | st.integers() | st.floats()))
def test_any_fields_make_one_line_that_can_be_encoded(fields):
    """Any fields make one line that every handler can write."""
    handler, logger = Lines(), logging.getLogger(f"{NAME}.any")
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        make_log(logger.name).info("thing_happened", **{f"f_{key}": value for key, value in fields.items()})
    finally:
        logger.removeHandler(handler)

    (line,) = handler.lines
    assert line.encode("utf-8").startswith(b"event=beaver_hooks.thing_happened")
    assert line.splitlines() == [line]


@pytest.mark.parametrize("error", [ValueError("x"), SystemExit(1)])
def test_a_handler_that_raises(error):
    """A failing handler harms no caller: `log` returns the type of its error, and raises only `KeyboardInterrupt`."""

    class Broken(logging.Handler):
        def emit(self, record):
            raise KeyboardInterrupt if record.levelname == "ERROR" else error

    logger = logging.getLogger(f"{NAME}.broken")
    handler, log = Broken(), make_log(logger.name)
    logger.addHandler(handler)
    try:
        assert log.warning("thing_happened") == type(error).__name__
        with pytest.raises(KeyboardInterrupt):
            log.error("thing_happened")
    finally:
        logger.removeHandler(handler)


def test_levels_are_the_application_s(lines):
    """An event below the level of the logger is not written."""
    logging.getLogger(NAME).setLevel(logging.ERROR)
    log = make_log(NAME)
    log.warning("thing_happened")
    log.error("other_thing_happened")

    assert lines == ["event=beaver_hooks.other_thing_happened"]


CONFIGURED = """
import logging, sys
import beaver_hooks, beaver_hostspecs
from beaver_hooks.log import make_log
loggers = [logging.getLogger(name) for name in (None, "beaver_hooks", "structlog")]
print([each.handlers for each in loggers], [logging.getLevelName(each.level) for each in loggers])
make_log().info("quiet"); make_log().debug("quiet")
make_log().warning("loud")
"""


def test_importing_installs_nothing(tmp_path):
    """No handler and no level; an application without logging sees warnings on stderr, and nothing below them."""
    done = python(CONFIGURED, tmp_path)

    assert (done.stdout, done.stderr) == (
        "[[], [], []] ['WARNING', 'NOTSET', 'NOTSET']\n",
        "event=beaver_hooks.loud\n",
    )


HOST = """
import asyncio
from beaver_hooks import Host
from beaver_hostspecs import hookimpl
class Calm:
    @hookimpl
    async def before_prompt(self, turn, report):
        report.event("thing_happened")
async def main():
    async with Host({"calm": Calm()}, state_folder="state") as host:
        async with host.turn("hello", session="s") as turn:
            await turn.commit("hi")
asyncio.run(main())
"""


def test_a_host_that_is_well_is_silent(tmp_path):
    """A whole life of a host prints nothing where nothing goes wrong."""
    done = python(HOST, tmp_path)

    assert (done.stdout, done.stderr) == ("", "")


def test_the_name_of_the_logger():
    """The logger has the package's name."""
    assert LOGGER_NAME == "beaver_hooks"
