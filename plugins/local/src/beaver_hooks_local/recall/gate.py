"""The recall gate: decides whether a prompt searches memory, reuses the last result, or gets no memories. Pure.

The first rule that fits decides:

1. A turn that a tool has caused, a prompt without a word and an acknowledgement need no memory.
2. The first turn of a session searches.
3. The same question, asked again while its answer is fresh, reuses that answer.
4. A prompt that refers to earlier work searches.
5. If a memory was written since the last search, or the last search found little, the gate searches again.
6. If the last search is too old, or too many turns have reused it, the gate searches again.
7. A prompt with a term that the last search did not have is another topic, and searches: a search costs little, and
   another question's answer is worth nothing.
8. All other prompts reuse the last result.
"""

from collections.abc import Container
from typing import Literal

import attrs

from beaver_hooks_local.recall.prompt_features import PromptFeatures

Verdict = Literal["recall", "reuse", "skip"]


@attrs.frozen(kw_only=True)
class GatePolicy:
    """How the gate decides.

    Attributes:
        topic_turns: how many turns one search serves.
    """

    topic_turns: int = 4


@attrs.frozen(kw_only=True)
class Window:
    """The last search of a session.

    Attributes:
        fingerprint: of the prompt that it was made for.
        terms: of that prompt.
        version: of the memories then.
        turns: how many turns it has served.
        confident: whether it found a good hit.
        past: whether it searched for what held earlier.
    """

    fingerprint: str
    terms: frozenset[int] = frozenset()
    version: tuple[int, ...] = ()
    turns: int = 1
    confident: bool = True
    past: bool = False


@attrs.frozen(kw_only=True)
class Decision:
    """The verdict of the gate, and its reason: a name of a rule, without content."""

    verdict: Verdict
    reason: str


def decide(
    said: PromptFeatures, window: Window | None, *, version: tuple[int, ...], fresh: Container[str], policy: GatePolicy
) -> Decision:
    """Return the decision of the first rule that fits.

    Args:
        said: the prompt.
        window: the last search of the session, if there was one.
        version: of the memories now.
        fresh: the fingerprints whose answers may be reused.
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


def _needs_none(said: PromptFeatures) -> str:
    if said.by_tool:
        return "tool_turn"
    if said.wordless:
        return "no_words"
    return "acknowledgement" if said.acknowledges else ""


def _why_again(
    said: PromptFeatures, window: Window, version: tuple[int, ...], fresh: Container[str], policy: GatePolicy
) -> str:
    rules = (
        ("prior_work", said.refers_back),
        ("memory_changed", window.version != version),
        ("low_confidence", not window.confident),
        ("stale", window.fingerprint not in fresh),
        ("window_over", window.turns >= policy.topic_turns),
        ("topic_change", not said.terms <= window.terms or said.kind.past != window.past),
    )
    return next((reason for reason, holds in rules if holds), "")
