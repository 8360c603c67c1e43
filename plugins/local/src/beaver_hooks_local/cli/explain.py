"""`explain`: the memories that a prompt would get, the share of each signal, and the decision of the recall gate."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import attrs
import click

from beaver_hooks_local.cli.options import (
    OwnerOptions,
    debug_option,
    json_option,
    limit_option,
    project_option,
    user_option,
)
from beaver_hooks_local.cli.output import counted, record, say, say_json, table, title
from beaver_hooks_local.cli.plugin_calls import ask
from beaver_hooks_local.cli.search import warn
from beaver_hooks_local.memory import LocalMemory
from beaver_hooks_local.recall.gate import Decision, GatePolicy, Window, decide
from beaver_hooks_local.recall.prompt_features import PromptFeatures, read
from beaver_hooks_local.recall.question_kind import QuestionKind
from beaver_hooks_local.recall.recaller import LEAST, SPARE, policy_of
from beaver_hooks_local.recall.references import pick
from beaver_hooks_local.recall.selection import GIVEN, chosen, is_related, was_true
from beaver_hooks_local.recall.selection import REASONS as SELECTED
from beaver_hooks_local.settings import LocalSettings
from beaver_hostspecs import Shell
from beaver_memory.patterns import parsed
from beaver_memory.runtime.reports import RecallReport
from beaver_memory.runtime.requests import RecallRequest

REASONS: Mapping[str, str] = MappingProxyType(
    {
        "off": "memory.local.recall.enabled is false",
        "no_words": "the prompt has no word to search for",
        "acknowledgement": "the prompt is only a yes, a no or thanks",
        "session_start": "it is the first prompt of its session",
        "same_query": "the previous prompt had the same words, and its recall is still fresh",
        "prior_work": "the prompt refers to earlier work",
        "low_confidence": "the previous recall found little",
        "topic_change": "the prompt has a word that the previous prompt did not have",
        "same_topic": "the prompt has no new word, so the memories of the previous prompt are used again",
    }
)
"""The meaning of the gate's reasons that are possible here."""


@attrs.frozen(kw_only=True)
class Explained:
    """The explanation of a prompt.

    Attributes:
        answer: of the search.
        recalled: of the search for the plain words of the prompt; the same without phrases and prefixes.
        reasons: why a turn would be given each memory or not, by id.
        floor: the lowest score of the best memory.
        gate: the decision of the gate.
        kind: the kind of the question.
    """

    answer: RecallReport
    recalled: RecallReport
    reasons: Mapping[int, str]
    floor: float
    gate: Decision
    kind: QuestionKind

    @property
    def given(self) -> frozenset[int]:
        """The memories that a turn would be given."""
        return frozenset(id_ for id_, reason in self.reasons.items() if reason == GIVEN)


@click.command()
@click.argument("words", metavar="QUERY...", nargs=-1, required=True)
@user_option
@project_option
@click.option(
    "--previous", metavar="PROMPT", help="The previous prompt of the session; without it, QUERY is the first prompt."
)
@limit_option(10, most=100)
@json_option
@debug_option
@click.pass_obj
def explain(
    shell: Shell,
    words: tuple[str, ...],
    *,
    user: str | None,
    project: str | None,
    previous: str | None,
    limit: int,
    as_json: bool,
) -> None:
    """Show what a prompt would recall, and why.

    For each memory that is found it shows what each signal adds to its score, and whether a turn with this prompt would
    be given it. Then it says what the recall gate would decide. In a conversation, `/memory local why` shows the same
    of the last recall.

    With "exact words" or prefix* the table is that of `beaver memory search`. In a prompt quotes and stars have no
    meaning: a turn is given what the plain words find.
    """
    which = OwnerOptions(user=user, project=project, as_turn=True)
    found = ask(shell, lambda memory: _explained(memory, which, " ".join(words), previous, limit))
    if as_json:
        say_json(_json(found))
        return
    warn(found.answer)
    say(_table(found) if found.answer.hits else "No memory was found.")
    say(_said(found))


def _explained(memory: LocalMemory, which: OwnerOptions, text: str, previous: str | None, limit: int) -> Explained:
    settings = memory.settings
    said = _read(memory, text)
    recalled = _recalled(memory, which, text, max(limit, settings.recall.top_k + SPARE), past=said.kind.past)
    policy = policy_of(settings.recall, recalled)
    hits = [hit for hit in recalled.hits if hit.score >= LEAST or not policy.floor][: settings.recall.top_k + SPARE]
    picked = pick(chosen(hits, policy, text, kind=said.kind), text, max_tokens=settings.recall.max_tokens)
    gate = _decided(memory, which, text, previous)
    reasons = picked.selection.reasons if gate.verdict == "recall" else {}
    recalled = attrs.evolve(recalled, hits=recalled.hits[:limit])
    answer = _looked(memory, which, text, limit, operators=True) if parsed(text)[1] else recalled
    return Explained(answer=answer, recalled=recalled, reasons=reasons, floor=policy.floor, gate=gate, kind=said.kind)


def _recalled(memory: LocalMemory, which: OwnerOptions, text: str, limit: int, *, past: bool) -> RecallReport:
    """Return the answer of a search as recall makes it; for the past it has what has ended."""
    found = _looked(memory, which, text, limit, past=past)
    now = memory.clock.now()
    return attrs.evolve(found, hits=tuple(hit for hit in found.hits if was_true(hit.memory, now))) if past else found


def _looked(
    memory: LocalMemory, which: OwnerOptions, text: str, limit: int, *, operators: bool = False, past: bool = False
) -> RecallReport:
    visible = attrs.evolve(which.filters(memory), lapsed=past)
    return memory.operations.recall(
        RecallRequest(query=text, operators=operators, visible=visible, limit=limit, minimum_score=0, explain=True)
    )


def _decided(memory: LocalMemory, which: OwnerOptions, text: str, previous: str | None) -> Decision:
    """Return the decision of the gate for a prompt, at the beginning of a session or directly after another prompt."""
    settings: LocalSettings = memory.settings
    if not settings.recall.enabled:
        return Decision(verdict="skip", reason="off")
    window, fresh = None, frozenset[str]()
    if previous is not None:
        before = _read(memory, previous)
        looked = _recalled(memory, which, previous, 1, past=before.kind.past)
        confident = is_related(looked.hits, policy_of(settings.recall, looked).floor)
        window = Window(fingerprint=before.fingerprint, terms=before.terms, confident=confident, past=before.kind.past)
        fresh = frozenset({before.fingerprint}) if confident else fresh
    policy = GatePolicy(topic_turns=settings.recall.topic_turns)
    return decide(_read(memory, text), window, version=(), fresh=fresh, policy=policy)


def _read(memory: LocalMemory, text: str) -> PromptFeatures:
    return read(text, memory.operations.terms(text))


def _signals(found: Explained) -> list[str]:
    """Return the signals that have added to a score, in the order of the formula."""
    names = dict.fromkeys(name for hit in found.answer.hits for name in hit.shares)
    return [name for name in names if any(hit.shares.get(name) for hit in found.answer.hits)]


def _table(found: Explained) -> str:
    signals = _signals(found)
    rows = [
        [
            f"{hit.score:.3f}",
            *(f"{hit.shares.get(name, 0):.3f}" for name in signals),
            "yes" if hit.memory.id in found.given else found.reasons.get(hit.memory.id, "no"),
            str(hit.memory.id),
            title(hit.memory),
        ]
        for hit in found.answer.hits
    ]
    return table([["score", *signals, "given", "id", "memory"], *rows])


def _said(found: Explained) -> str:
    verdicts = {
        "recall": "The prompt would start a recall",
        "reuse": "The last recall would be used again",
        "skip": "Nothing would be recalled",
    }
    gate = found.gate
    lines = [f"\n{verdicts[gate.verdict]}: {REASONS.get(gate.reason, gate.reason)} ({gate.verdict}, {gate.reason})."]
    if gate.verdict == "recall":
        of = counted(found.recalled.candidates, "candidate")
        lines.append(
            f"The model would get {len(found.given)} of {of}; the best one must score {found.floor:g} or more."
        )
        lines += [f"{name}: {SELECTED[name]}." for name in dict.fromkeys(found.reasons.values()) if name != GIVEN]
        lines += ["The question asks for many: further memories need a smaller score."] if found.kind.many else []
        lines += ["The question asks for the past: memories that have ended count, too."] if found.kind.past else []
    if found.answer is not found.recalled:
        lines.append("The table is of a search; in a prompt quotes and stars have no meaning.")
    return "\n".join(lines)


def _json(found: Explained) -> dict[str, Any]:
    hits = [
        {
            **record(hit.memory),
            "score": round(hit.score, 6),
            "shares": dict(hit.shares),
            "given": hit.memory.id in found.given,
            "reason": found.reasons.get(hit.memory.id),
        }
        for hit in found.answer.hits
    ]
    return {
        "hits": hits,
        "candidates": found.answer.candidates,
        "keyword_only": found.answer.keyword_only,
        "without_index": found.answer.without_index,
        "not_reranked": found.answer.not_reranked,
        "minimum_score": found.floor,
        "gate": {"verdict": found.gate.verdict, "reason": found.gate.reason},
    }
