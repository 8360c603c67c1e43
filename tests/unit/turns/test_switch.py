"""The memory switch: for whom memory is off, in one file that all processes of a state folder share."""

import json
import subprocess
import sys
from functools import partial

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from beaver_hooks.audit.chain import identify
from beaver_hooks.turns.switch import FILE, MemorySwitch
from beaver_hostspecs import AuditUnavailable

KEY = b"k" * 32


class Notes:
    """Stands for the recorder: makes the hashes, and notes whether the file can be read."""

    def __init__(self, key=KEY):
        self.identify, self.readable = partial(identify, key), []
        self.health = self

    def is_at_fault(self, plugin, source):
        return True

    def succeeded(self, plugin, *, source):
        self.readable.append(True)

    def degraded(self, plugin, *, source, category):
        self.readable.append(False)


def make(folder, notes=None):
    return MemorySwitch(folder / FILE, notes or Notes())


def test_it_is_on_where_nothing_was_switched(tmp_path):
    """Without a file memory is on, and asking makes none."""
    assert (False, []) == (make(tmp_path).is_off("ann", "s1"), list(tmp_path.iterdir()))


@pytest.mark.parametrize(("content", "readable"), [(None, True), ("canary", False)])
def test_a_review_corrects_the_health(tmp_path, content, readable):
    """A review ends the fault that an earlier host reported, unless the file still cannot be read."""
    if content:
        (tmp_path / FILE).write_text(content)
    notes = Notes()
    make(tmp_path, notes).review()

    assert [readable] == notes.readable


def test_off_is_for_one_session_of_one_user(tmp_path):
    """Another session, another user and a turn without a user are not concerned."""
    switch = make(tmp_path)
    switch.turn("ann", "s1", off=True)
    asked = [("ann", "s1"), ("ann", "s2"), ("bob", "s1"), (None, "s1"), ("ann", None)]
    assert [True, False, False, False, False] == [switch.is_off(*each) for each in asked]


def test_off_without_a_session_is_for_all_sessions_of_the_user(tmp_path):
    """Every session of the user is off, known or not, and of no other user."""
    switch = make(tmp_path)
    switch.turn(None, None, off=True)
    asked = [(None, "s1"), (None, None), ("ann", "s1")]
    assert [True, True, False] == [switch.is_off(*each) for each in asked]


def test_on_takes_back_what_off_did(tmp_path):
    """After off and on, memory is on, and switching on twice is no error."""
    switch = make(tmp_path)
    for off in (True, False, False):
        switch.turn("ann", "s1", off=off)
    assert (False, []) == (switch.is_off("ann", "s1"), json.loads((tmp_path / FILE).read_text())["off"])


def test_the_file_names_nobody(tmp_path):
    """Users and sessions stand in the file as keyed hashes only."""
    make(tmp_path).turn("ann-of-ulm", "session-of-ann", off=True)
    content = (tmp_path / FILE).read_text()
    assert (False, False, 0o600) == (
        "ann-of-ulm" in content,
        "session-of-ann" in content,
        (tmp_path / FILE).stat().st_mode & 0o777,
    )


def test_another_process_is_heeded_at_once(tmp_path):
    """What another process switches off is off here at the next question, and on again when it says so."""
    switch = make(tmp_path)
    program = (
        "import sys; from functools import partial; from pathlib import Path; from types import SimpleNamespace\n"
        "from beaver_hooks.audit.chain import identify\n"
        "from beaver_hooks.turns.switch import MemorySwitch\n"
        f"recorder = SimpleNamespace(identify=partial(identify, {KEY!r}))\n"
        "switch = MemorySwitch(Path(sys.argv[1]), recorder)\n"
        "switch.turn('ann', 's1', off=sys.argv[2] == 'off')\n"
    )
    seen = [switch.is_off("ann", "s1")]
    for what in ("off", "on"):
        subprocess.run([sys.executable, "-c", program, str(tmp_path / FILE), what], check=True)
        seen.append(switch.is_off("ann", "s1"))
    assert [False, True, False] == seen


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b'{"version": 1, "key": "x", "off": [', id="torn"),
        pytest.param(b"[]", id="no-object"),
        pytest.param(b'{"version": 2, "off": []}', id="newer"),
        pytest.param(b'{"version": 1, "key": "another", "off": []}', id="other-key"),
        pytest.param(b'{"version": 1, "off": [1]}', id="no-texts"),
        pytest.param(b"\xff\xfe", id="no-text"),
        pytest.param(b"[" * 100_000, id="deep"),
    ],
)
def test_a_file_that_cannot_be_read_is_off_for_everyone(tmp_path, content):
    """What a user has switched off stays off; switching says what to do, and a whole file ends the trouble."""
    notes = Notes()
    switch = make(tmp_path, notes)
    switch.turn("ann", "s1", off=True)
    whole = (tmp_path / FILE).read_bytes()
    (tmp_path / FILE).write_bytes(content)

    off = [switch.is_off("bob", "s9"), switch.is_off(None, None)]
    with pytest.raises(AuditUnavailable, match="memory cannot be switched"):
        switch.turn("ann", "s1", off=False)
    (tmp_path / FILE).write_bytes(whole)
    after = [switch.is_off("bob", "s9"), switch.is_off("ann", "s1")]

    assert ([True, True], [False, True], [False, True]) == (off, after, notes.readable)


def test_a_file_that_cannot_be_opened_is_off_for_everyone(tmp_path):
    """A folder in the place of the file counts as one that cannot be read."""
    (tmp_path / FILE).mkdir()
    switch = make(tmp_path)
    assert [True, True] == [switch.is_off("ann", "s1"), switch.is_off(None, None)]


def test_a_switch_that_cannot_be_written_says_so(tmp_path):
    """Where the folder is missing nothing is switched, and the error names the file."""
    switch = make(tmp_path / "gone")
    with pytest.raises(AuditUnavailable, match=FILE):
        switch.turn("ann", "s1", off=True)
    assert not switch.is_off("ann", "s1")


USERS = st.sampled_from([None, "ann", "bob"])
SESSIONS = st.sampled_from([None, "s1", "s2"])


class Switching(RuleBasedStateMachine):
    """Two processes' switches over one file agree with a set of pairs."""

    @initialize()
    def begin(self):
        import tempfile
        from pathlib import Path

        self.folder = tempfile.TemporaryDirectory()
        self.switches = [make(Path(self.folder.name)) for _ in range(2)]
        self.off = set()

    @rule(which=st.integers(0, 1), user=USERS, session=SESSIONS, off=st.booleans())
    def turn(self, which, user, session, off):
        self.switches[which].turn(user, session, off=off)
        (self.off.add if off else self.off.discard)((user, session))

    @invariant()
    def both_agree(self):
        for user in (None, "ann", "bob"):
            for session in (None, "s1", "s2"):
                wanted = bool(self.off & {(user, None), (user, session)})
                assert [wanted, wanted] == [each.is_off(user, session) for each in self.switches]

    def teardown(self):
        self.folder.cleanup()


TestSwitching = Switching.TestCase
TestSwitching.settings = settings(max_examples=settings.default.max_examples // 4, stateful_step_count=15)
