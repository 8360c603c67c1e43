"""Keeps what the next turn of each session is understood by. In the event loop only; nothing here waits."""

from collections import OrderedDict, deque

import attrs
from attrs import field

from beaver_memory.capture.outcomes import ToolOutcome
from beaver_memory.capture.records import Utterance
from beaver_memory.records import QueuedSession

MOST_SESSIONS = 1_000
MOST_EXTERNAL = 5
"""External texts of a session against which later messages are compared."""

MOST_OUTCOMES = 100


@attrs.define(kw_only=True)
class _Session:
    outcomes: list[ToolOutcome] = field(factory=list)
    external: deque[Utterance] = field(factory=lambda: deque(maxlen=MOST_EXTERNAL))
    before: tuple[Utterance, ...] = ()
    messages: int = 0


class SessionContexts:
    """The contexts of the sessions of a process. The oldest session gives way to a new one."""

    def __init__(self) -> None:
        self._sessions: OrderedDict[QueuedSession, _Session] = OrderedDict()

    def tool(self, place: QueuedSession, outcome: ToolOutcome, external: Utterance | None) -> None:
        """Keep how a tool ended, and the external text that it gave."""
        session = self._of(place)
        session.outcomes = [*session.outcomes, outcome][-MOST_OUTCOMES:]
        if external is not None:
            session.external.append(external)

    def turn(
        self, place: QueuedSession, said: tuple[Utterance, ...]
    ) -> tuple[tuple[Utterance, ...], tuple[ToolOutcome, ...]]:
        """Return the messages of a turn behind those that help to understand them, and how its tools ended."""
        session = self._of(place)
        found = (*session.external, *session.before, *said), tuple(session.outcomes)
        session.before, session.outcomes = (attrs.evolve(said[-1], is_context=True),), []
        session.messages += sum(not each.is_context or each.voice == "assistant" for each in said)
        return found

    def drop_tools(self, place: QueuedSession) -> None:
        """Discard how tools ended, because their turn has no answer."""
        if (session := self._sessions.get(place)) is not None:
            session.outcomes = []

    def erased(self, place: QueuedSession, turn: str) -> None:
        """Discard the external texts of a session from before a turn, because another process has erased that."""
        session = self._of(place)
        session.external = deque((each for each in session.external if each.turn == turn), MOST_EXTERNAL)

    def waiting(self) -> list[QueuedSession]:
        """Return the sessions of which messages wait to be captured."""
        return [place for place, session in self._sessions.items() if session.messages]

    def messages(self, place: QueuedSession) -> int:
        """Return how many messages of a session wait to be captured."""
        return self._of(place).messages

    def captured(self, place: QueuedSession) -> None:
        """Note that the messages of a session are captured now."""
        if (session := self._sessions.get(place)) is not None:
            session.messages = 0

    def _of(self, place: QueuedSession) -> _Session:
        session = self._sessions.setdefault(place, _Session())
        self._sessions.move_to_end(place)
        while len(self._sessions) > MOST_SESSIONS:
            self._sessions.popitem(last=False)
        return session
