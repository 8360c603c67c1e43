"""Keeps the messages of each session that were not captured yet. In the event loop only; nothing here waits."""

import itertools
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator

import attrs
from attrs import field

from beaver_hooks_local.visibility import Visibility
from beaver_memory.capture.outcomes import ToolOutcome
from beaver_memory.capture.records import Utterance

MOST_SESSIONS = 1_000
MOST_MESSAGES = 200
"""Messages of a session that wait."""

MOST_EXTERNAL = 5
"""External texts of a session against which later messages are compared."""

MOST_OUTCOMES = 100


@attrs.frozen(kw_only=True)
class Batch:
    """The part of a session that is captured now.

    Attributes:
        sight: of the session's caller.
        said: the texts, in order.
        outcomes: how tools ended, in order.
        paths: the files that the tools were given.
        was_injected: whether a text was recalled in one of the turns.
    """

    sight: Visibility
    said: tuple[Utterance, ...] = field(repr=False)
    outcomes: tuple[ToolOutcome, ...] = ()
    paths: tuple[str, ...] = ()
    was_injected: Callable[[str], bool] = field(repr=False)


@attrs.define(kw_only=True)
class _Session:
    said: list[Utterance] = field(factory=list)
    outcomes: list[ToolOutcome] = field(factory=list)
    external: deque[Utterance] = field(factory=lambda: deque(maxlen=MOST_EXTERNAL))
    injected: list[Callable[[str], bool]] = field(factory=list)
    before: Utterance | None = None
    messages: int = 0
    at: float = 0.0
    lost: bool = False


class SessionBuffer:
    """The messages that wait, by session and caller. The oldest session gives way to a new one."""

    def __init__(self) -> None:
        self._sessions: OrderedDict[Visibility, _Session] = OrderedDict()

    def tool(self, sight: Visibility, outcome: ToolOutcome, external: Utterance | None) -> None:
        """Keep how a tool ended, and the external text that it gave."""
        session = self._of(sight)
        session.outcomes = [*session.outcomes, outcome][-MOST_OUTCOMES:]
        if external is not None:
            session.external.append(external)

    def turn(
        self, sight: Visibility, said: tuple[Utterance, ...], was_injected: Callable[[str], bool], *, now: float
    ) -> int:
        """Keep the messages of a turn; return how many wait now."""
        session = self._of(sight)
        session.lost |= len(session.said) + len(said) > MOST_MESSAGES
        session.said = [*session.said, *said][-MOST_MESSAGES:]
        session.injected = [*session.injected, was_injected][-MOST_MESSAGES:]
        session.messages += sum(not each.is_context or each.voice == "assistant" for each in said)
        session.at = now
        return session.messages

    def drop_tools(self, sight: Visibility) -> None:
        """Discard how tools ended, because their turn has no answer."""
        if (session := self._sessions.get(sight)) is not None:
            session.outcomes = []

    def take(self, sight: Visibility) -> Batch | None:
        """Return the messages of a session, and keep only their last one as context of the next."""
        session = self._sessions.get(sight)
        if session is None or not session.said:
            return None
        context = () if session.before is None else (session.before,)
        injected = tuple(session.injected)
        batch = Batch(
            sight=sight,
            said=(*session.external, *context, *session.said),
            outcomes=tuple(session.outcomes),
            paths=tuple(dict.fromkeys(itertools.chain.from_iterable(each.files for each in session.outcomes))),
            was_injected=lambda text: any(each(text) for each in injected),
        )
        session.before = attrs.evolve(session.said[-1], is_context=True)
        session.said, session.outcomes, session.injected, session.messages = [], [], [], 0
        return batch

    def idle(self, before: float) -> Iterator[Batch]:
        """Take the messages of the sessions that have said nothing since a moment."""
        for sight in [sight for sight, session in self._sessions.items() if session.at <= before]:
            if (batch := self.take(sight)) is not None:
                yield batch

    def covered(self, sight: Visibility) -> Iterator[Batch]:
        """Take the messages of the sessions that a sight covers."""
        for each in [each for each in self._sessions if sight.covers(each)]:
            if (batch := self.take(each)) is not None:
                yield batch

    def lose(self, sight: Visibility) -> None:
        """Note that messages of a session were taken and not stored."""
        self._of(sight).lost = True

    def forgive(self, sight: Visibility) -> bool:
        """Return whether messages of the sessions that a sight covers were lost, and forget that."""
        lost = [session for each, session in self._sessions.items() if sight.covers(each) and session.lost]
        for session in lost:
            session.lost = False
        return bool(lost)

    def _of(self, sight: Visibility) -> _Session:
        session = self._sessions.setdefault(sight, _Session())
        self._sessions.move_to_end(sight)
        while len(self._sessions) > MOST_SESSIONS:
            self._sessions.popitem(last=False)
        return session
