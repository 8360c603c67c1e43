"""Measures what the rules of capture keep, and what recall loses over it. No language model.

1. LoCoMo: both speakers are replayed as users. The rules and their threshold were frozen on conversations 1 to 3; the
   figures that count are those of 4 and 5: the share of evidence turns from which something was captured, and the share
   of all turns.
2. BEAM: the share of evidence messages from which something was captured, and the share of the characters.
3. Short messages of a newcomer: the share kept of those that state something, and of the small talk. The rules were
   written with one half of the lists in view; the figures that count are those of the other half. The statements of the
   benchmark of supersession, of authors who had not seen the rules, are a second measure.
4. Recall over the captured memories, against recall over every message, in the same form and with the same fields.

    BEAVER_BENCH_DATA=... python benchmarks/local/bench_local_capture.py
"""

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import attrs
from kit_beam import beam
from kit_changes import changes
from kit_data import Case, Item, locomo, text_only, with_fields
from kit_engine import e5_small, stores
from kit_score import Targets, any_at, flat, frac_at, heading, machine, noise, row
from kit_short_messages import MEASURED, SEEN, SMALL_TALK, STATEMENTS

from beaver_memory.capture.records import Candidate, Utterance, Voice
from beaver_memory.capture.rules import RuleExtractor
from beaver_memory.capture.unmeant import unmeant
from beaver_memory.embedding.protocol import Embedder

FROZEN_ON = 3
EVIDENCE, TURNS = 0.83, 0.50
BEAM_EVIDENCE, CHARACTERS = 0.85, 0.07
LOSS = 0.02
LEAST_STATEMENTS, MOST_SMALL_TALK = 0.90, 0.10
RULES = RuleExtractor()


@attrs.frozen(kw_only=True)
class Yield:
    """What capture kept of some chats, as shares.

    Attributes:
        evidence: of the messages that hold the answer to a question.
        turns: of all messages.
        characters: of all characters.
        kinds: how many candidates there are of each kind.
    """

    evidence: float
    turns: float
    characters: float
    kinds: Counter[str]


def candidates(case: Case) -> Iterator[tuple[Item, Sequence[Candidate]]]:
    """Yield each message with what the rules find in it. Every speaker but an assistant is a user."""
    before: Item | None = None
    for item in case.items:
        context = [] if before is None or before.session != item.session else [utterance(before, is_context=True)]
        yield item, _meant(RULES.extract([*context, utterance(item)]).candidates, item.text)
        before = item


def _meant(found: Sequence[Candidate], message: str) -> list[Candidate]:
    """Return the candidates that the write gate does not refuse as no statement of their speaker."""
    return [each for each in found if each.explicit or not unmeant(each.text, message)]


def utterance(item: Item, *, is_context: bool = False) -> Utterance:
    """Return a message as capture reads it."""
    voice: Voice = "assistant" if item.speaker == "assistant" else "user"
    return Utterance(text=item.text, voice=voice, is_context=is_context)


def yield_of(cases: Sequence[Case]) -> Yield:
    """Return the yield of the messages of cases."""
    kept = total = evidence_kept = evidence_total = characters = all_characters = 0
    kinds: Counter[str] = Counter()
    for case in cases:
        evidence = {key for question in case.questions for key in question.evidence}
        for item, found in candidates(case):
            kinds.update(each.kind for each in found)
            total, kept = total + 1, kept + bool(found)
            all_characters, characters = all_characters + len(item.text), characters + sum(len(e.text) for e in found)
            if item.key in evidence:
                evidence_total, evidence_kept = evidence_total + 1, evidence_kept + bool(found)
    return Yield(
        evidence=evidence_kept / evidence_total,
        turns=kept / total,
        characters=characters / all_characters,
        kinds=kinds,
    )


def captured(case: Case, prefix: Callable[[str], str]) -> Case:
    """Return a case with the captured memories in place of the messages.

    Args:
        case: with bare messages.
        prefix: returns what stands before the text of the message with a key.
    """
    items = tuple(
        attrs.evolve(item, text=prefix(item.key) + each.text, keywords=each.keywords)
        for item, found in candidates(case)
        for each in found
    )
    return attrs.evolve(case, items=items)


def shown(name: str, found: Yield) -> None:
    """Print a line of the table of yields."""
    row(name, (found.evidence, found.turns, found.characters))
    print("    " + ", ".join(f"{kind} {count}" for kind, count in found.kinds.most_common()))


def losses(title: str, whole: Sequence[Case], kept: Sequence[Case], embedder: Embedder | None, told: Targets) -> None:
    """Print recall over every message, and over the captured memories."""
    name = "words" if embedder is None else "e5-small"
    with stores(whole, [embedder]) as every, stores(kept, [embedder]) as some:
        before, after = (flat([each.ask(embedder) for each in filled]) for filled in (every, some))
    for label, found in (("every message", before), ("captured", after)):
        row(f"{title}, {name}, {label}", (frac_at(found, 10), any_at(found, 10)))
    print(f"    n = {len(before)} questions, +- {noise(before):.3f}")
    told.least(f"{title}, {name}: captured - everything, frac@10", frac_at(after, 10) - frac_at(before, 10), -LOSS)


def bare(case: Case, texts: dict[str, str]) -> Case:
    """Return a case with other texts."""
    return attrs.evolve(case, items=tuple(attrs.evolve(item, text=texts[item.key]) for item in case.items))


def share_kept(messages: Sequence[str]) -> float:
    """Return the share of messages, each by itself, from which something is captured."""
    return sum(bool(_meant(RULES.extract([Utterance(text=each)]).candidates, each)) for each in messages) / len(
        messages
    )


def on_short_messages(told: Targets) -> None:
    """Measure on short messages."""
    heading("What capture keeps of short messages", ("stated", "small talk"))
    for name, half in (("half that the rules were written with", SEEN), ("half that is measured only", MEASURED)):
        row(name, (share_kept(STATEMENTS[half]), share_kept(SMALL_TALK[half])))
    told.least("short statements kept, measured half", share_kept(STATEMENTS[MEASURED]), LEAST_STATEMENTS)
    told.least("1 - share of small talk kept, measured half", 1 - share_kept(SMALL_TALK[MEASURED]), 1 - MOST_SMALL_TALK)
    heading("What capture keeps of the statements of other authors", ("en", "de", "zh"))
    for name in ("unseen", "foreign", "fresh"):
        row(name, [share_kept(said_in(language, name)) for language in ("en", "de", "zh")])


def said_in(language: str, name: str) -> list[str]:
    """Return the statements in a language of a set of the benchmark of supersession."""
    return [text for each in changes(name) if each.language == language for text in (each.first, each.second)]


def on_locomo(embedders: Sequence[Embedder | None], told: Targets) -> None:
    """Measure on LoCoMo."""
    found = locomo()
    if found is None:
        return
    conversations, digest = found
    print(f"LoCoMo, categories 1-4, sha256 {digest}")
    plain = [text_only(each) for each in conversations]
    heading("What capture keeps of LoCoMo", ("evidence", "turns", "chars"))
    shown("conversations 1-3, the rules were frozen on", yield_of(plain[:FROZEN_ON]))
    unseen = yield_of(plain[FROZEN_ON:])
    shown("conversations 4-5", unseen)
    told.least("LoCoMo 4-5: evidence turns kept", unseen.evidence, EVIDENCE)
    told.least("LoCoMo 4-5: 1 - share of turns kept", 1 - unseen.turns, 1 - TURNS)
    whole = [with_fields(each) for each in conversations]
    kept = []
    for case, spoken in zip(whole, plain, strict=True):
        texts = {item.key: item.text for item in spoken.items}
        heads = {item.key: item.text.removesuffix(texts[item.key]) for item in case.items}
        kept.append(captured(bare(case, texts), heads.__getitem__))
    heading("Recall over LoCoMo", ("frac@10", "any@10"))
    for embedder in embedders:
        losses("LoCoMo 1-5", whole, kept, embedder, told)
        losses("LoCoMo 4-5", whole[FROZEN_ON:], kept[FROZEN_ON:], embedder, told)


def on_beam(embedders: Sequence[Embedder | None], told: Targets) -> None:
    """Measure on BEAM."""
    found = beam()
    if found is None:
        return
    cases, digest = found
    print(f"\nBEAM, {len(cases)} chats, sha256 {digest}")
    heading("What capture keeps of BEAM", ("evidence", "messages", "chars"))
    kept = yield_of(cases)
    shown("all chats", kept)
    told.least("BEAM: evidence messages kept", kept.evidence, BEAM_EVIDENCE)
    told.least("BEAM: 1 - share of characters kept", 1 - kept.characters, 1 - CHARACTERS)
    heading("Recall over BEAM", ("frac@10", "any@10"))
    for embedder in embedders:
        losses("BEAM", cases, [captured(case, lambda _: "") for case in cases], embedder, told)


def main() -> int:
    """Measure, print, and return 1 if a target is missed."""
    began, told = time.perf_counter(), Targets()
    print(machine("numpy", "apsw", "onnxruntime", "beaver-hooks-local"))
    embedders: list[Embedder | None] = [None]
    if "--words" not in sys.argv:
        embedders += [made] if (made := e5_small()) is not None else []
    on_short_messages(told)
    on_locomo(embedders, told)
    on_beam(embedders, told)
    print(f"\n{time.perf_counter() - began:.0f} seconds; missed: {', '.join(told.missed) or 'nothing'}")
    return int(bool(told.missed))


if __name__ == "__main__":
    sys.exit(main())
