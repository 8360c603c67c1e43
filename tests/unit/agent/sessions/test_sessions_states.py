"""Whatever is done in whatever order, the store answers as a plain dictionary would."""

import tempfile
from datetime import UTC, datetime
from pathlib import Path

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from beaver_hooks.agent.sessions.database import SessionDatabase
from beaver_hooks.agent.sessions.records import ImportReport, Resumed
from beaver_hooks.agent.sessions.transactions import Work
from beaver_hooks.agent.sessions.transfer import read_lines, session_lines
from beaver_hostspecs import Message

WHEN = datetime(2026, 1, 2, tzinfo=UTC)
TEXT = st.text(st.characters(), max_size=20)


class Sessions(RuleBasedStateMachine):
    """A store beside the dictionary that it should equal."""

    ids = Bundle("ids")

    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.database = SessionDatabase(Path(self.folder.name))
        self.work = Work(self.database)
        self.model = {}

    @rule(target=ids, session=st.sampled_from("abcd"), user=st.sampled_from([None, "me"]))
    def ensure(self, session, user):
        self.work.ensure(session, user, WHEN)
        self.model.setdefault(session, ([], []))
        return session

    @rule(session=ids, prompt=TEXT, answer=TEXT)
    def append(self, session, prompt, answer):
        if session in self.model:
            messages = [Message(role="user", text=prompt, when=WHEN), Message(role="assistant", text=answer, when=WHEN)]
            self.work.append(session, messages, WHEN)
            self.model[session][0].extend(messages)

    @rule(session=ids, name=st.sampled_from(["one", "two"]))
    def happen(self, session, name):
        if session in self.model:
            self.work.add_event(session, name, {}, WHEN)
            self.model[session][1].append(name)

    @rule(session=ids, limit=st.integers(0, 6))
    def resume(self, session, limit):
        messages, _ = self.model.get(session, ([], []))
        history = tuple(messages[len(messages) - limit :] if limit < len(messages) else messages)
        expected = Resumed(id=session, history=history)
        assert expected == self.work.resume(session, limit)

    @rule(session=consumes(ids))
    def delete(self, session):
        if self.model.pop(session, None) is not None:
            self.work.delete(session)

    @rule(session=ids)
    def replace_by_its_own_export(self, session):
        if session in self.model:
            (incoming,) = read_lines(session_lines(self.work.show(session, hidden=True)))
            self.work.take_in(incoming=incoming, replace=True, total=ImportReport())

    @rule()
    def reopen(self):
        self.database.close()
        self.work = Work(self.database)

    @invariant()
    def equals_the_model(self):
        shown = {each: self.work.show(each, hidden=True) for each in self.work.session_ids()}
        listed = {info.id for info in self.work.list(100, None)}
        assert {each for each, (messages, _) in self.model.items() if messages} == listed
        assert self.model == {
            session: ([*each.messages], [event.name for event in each.events]) for session, each in shown.items()
        }
        assert {session: (len(said), len(happened)) for session, (said, happened) in self.model.items()} == {
            session: (each.info.messages, each.info.events) for session, each in shown.items()
        }

    def teardown(self):
        assert () == self.work.integrity()
        self.database.close()
        self.folder.cleanup()


TestSessions = Sessions.TestCase
TestSessions.settings = settings(max_examples=settings.default.max_examples // 4, stateful_step_count=15)
