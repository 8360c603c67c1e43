"""The recall gate: whether to look into memory for a prompt, to use again what was found, or to leave it be. Pure.

The first rule that fits decides:

1. A turn that a tool has caused, a prompt without a word and an acknowledgement need no memory.
2. The first turn of a session looks.
3. The same question, asked again while its answer is fresh, uses that answer.
4. A prompt that speaks of earlier work looks.
5. Where something was written since the last look, or the last look found little, it looks again.
6. Where the last look is too long ago, or too many turns have used it, it looks again.
7. A prompt with a term that the last look did not have is another topic, and looks: that costs little, and another
   question's answer is worth nothing.
8. All others use again what was found.
"""

from collections.abc import Container
from typing import Literal

import attrs

from beaver_hooks_local.recall.prompt_features import Said

Verdict = Literal["recall", "reuse", "skip"]


@attrs.frozen(kw_only=True)
class Policy:
    """How the gate decides.

    Attributes:
        topic_turns: how many turns one look serves.
    """

    topic_turns: int = 4


@attrs.frozen(kw_only=True)
class Window:
    """The last look of a session.

    Attributes:
        fingerprint: of the prompt that it was made for.
        terms: of that prompt.
        version: of the memories then.
        turns: how many turns it has served.
        confident: whether it found something good.
    """

    fingerprint: str
    terms: frozenset[int] = frozenset()
    version: tuple[int, ...] = ()
    turns: int = 1
    confident: bool = True


@attrs.frozen(kw_only=True)
class Decision:
    """What the gate says, and why: a name of a rule, without content."""

    verdict: Verdict
    reason: str


def decide(
    said: Said, window: Window | None, *, version: tuple[int, ...], fresh: Container[str], policy: Policy
) -> Decision:
    """Decide.

    Args:
        said: the prompt.
        window: the last look of the session, if there was one.
        version: of the memories now.
        fresh: the fingerprints whose answers may be used again.
        policy: how to decide.
    """
    if reason := _needs_none(said):
        return Decision(verdict="skip", reason=reason)
    if window is None:
        return Decision(verdict="recall", reason="session_start")
    if said.fingerprint in fresh:
        return Decision(verdict="reuse", reason="same_query")
    if reason := _why_again(said, window, version, fresh, policy):
        return Decision(verdict="recall", reason=reason)
    return Decision(verdict="reuse", reason="same_topic")


def served(window: Window) -> Window:
    """Return a window that has served one more turn."""
    return attrs.evolve(window, turns=window.turns + 1)


def _needs_none(said: Said) -> str:
    if said.by_tool:
        return "tool_turn"
    if said.wordless:
        return "no_words"
    return "acknowledgement" if said.acknowledges else ""


def _why_again(said: Said, window: Window, version: tuple[int, ...], fresh: Container[str], policy: Policy) -> str:
    rules = (
        ("prior_work", said.refers_back),
        ("memory_changed", window.version != version),
        ("low_confidence", not window.confident),
        ("stale", window.fingerprint not in fresh),
        ("window_over", window.turns >= policy.topic_turns),
        ("topic_change", not said.terms <= window.terms),
    )
    return next((reason for reason, holds in rules if holds), "")
