"""Measures whether German and Chinese are recalled as well as English, by one made-up set in three languages.

The set is the project's own: two users, each with 100 questions and over 330 memories, who tell the same facts in each
language; see `kit_languages.py`. frac@10 is the mean share of the evidence among the first ten memories. *relation* is
that of a language divided by that of English, with half of its 95 % interval over the questions, which are paired.

A second table shows what the engine and the plugin recognise in the texts of each language: questions for a time, a
number or a list; statements with a time, a number or a rule of the user; what capture keeps of statements and of small
talk; and whether the excerpt of a long memory has the statement that answers a question.

`BEAVER_BENCH_VECTORS` names a file that keeps the vectors of e5-small for the next run.

    python benchmarks/local/bench_local_languages.py
"""

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from kit_data import digest
from kit_engine import EARLY, OWNER, VECTORS, Filled, Remembering, asked, e5_small, static, stores
from kit_languages import LANGUAGES, Texts, about, conversations, texts_of
from kit_score import Ranking, Targets, flat, frac_at, heading, interval, machine, noise, row

from beaver_hooks_local.recall.question_kind import kind_of
from beaver_hooks_local.recall.references import excerpt
from beaver_hostspecs.tokens import estimate_tokens
from beaver_memory.capture.records import Candidate, Utterance
from beaver_memory.capture.rules import RuleExtractor
from beaver_memory.query import Hit
from beaver_memory.records import Memory
from beaver_memory.search.terms import Analyser
from beaver_memory.search.traits import FIRST, NUMBER, RULE, TIME, TraitReader

LEAST = 0.95
TIMES = ("birthday", "wedding", "surgery", "exam", "flight", "moving")
COUNTS = ("chickens", "children", "debt", "food", "licence", "rent", "steps")
"""Kinds of facts that have a date, or a number."""

LONG = 12
"""Statements of a long memory."""

PLAIN = "English"
TARGETS = ("words only", "e5-small")
"""The embedders with a target; another one is shown for information."""

Sets = Mapping[str, Sequence[Filled]]
ANALYSER, READER = Analyser(), TraitReader()


def shares(rankings: Sequence[Ranking]) -> np.ndarray:
    """Return frac@10 of each question."""
    return np.array([frac_at([each], 10) for each in rankings])


def relation(own: Sequence[Ranking], english: Sequence[Ranking]) -> tuple[float, float]:
    """Return frac@10 of a language divided by that of English, and half the width of its 95 % interval."""
    both = np.stack([shares(own), shares(english)], axis=1)
    low, high = interval(list(both), lambda drawn: drawn[..., 0].mean(1) / drawn[..., 1].mean(1))
    return float(both[:, 0].mean() / both[:, 1].mean()), (high - low) / 2


def measure(filled: Sets, embedders: Mapping[str, Remembering | None], targets: Targets) -> None:
    """Print the figures of each language and embedder."""
    heading("Mean share of the evidence among the first ten", ("n", "@10", "+-", "half 1", "half 2", "relation", "+-"))
    for name, embedder in embedders.items():
        found = {language: asked(each, embedder) for language, each in filled.items()}
        english = flat(found[PLAIN])
        for language, halves in found.items():
            every = flat(halves)
            ratio, width = relation(every, english)
            figures = (frac_at(every, 10), noise(every), *(frac_at(each, 10) for each in halves), ratio, width)
            row(f"{language}, {name}", (str(len(every)), *figures))
            if name in TARGETS and language != PLAIN:
                targets.least(f"{language}, {name}, relative to English", ratio, LEAST)


def recognised(language: str) -> dict[str, list[bool]]:
    """Return whether each text of a language is recognised, by the name of the check."""
    texts = texts_of(language)

    def asked_about(table: str, kinds: Iterable[str]) -> list[str]:
        return [about(texts, half, table, kind)[1] for kind in kinds for half in (0, 1)]

    def said_about(table: str, kinds: Iterable[str]) -> list[str]:
        return [each for kind in kinds for half in (0, 1) for each in about(texts, half, table, kind)[0]]

    def found(said: Iterable[str]) -> list[Sequence[Candidate]]:
        rules = RuleExtractor()
        return [rules.extract([Utterance(text=each, voice="user")]).candidates for each in said]

    facts = [each for table in ("who", "own", "list") for each in said_about(table, texts[table])]
    rules = found(said_about("rule", texts["rule"]))
    return {
        "asked when": [ANALYSER.intent(each, "user").when for each in asked_about("who", TIMES)],
        "told when": [has(each, TIME) for each in said_about("who", TIMES)],
        "asked how many": [ANALYSER.intent(each, "user").how_many for each in asked_about("who", COUNTS)],
        "told how many": [has(each, NUMBER) for each in said_about("who", COUNTS)],
        "asked for a list": [kind_of(each.casefold()).many for each in asked_about("list", texts["list"])],
        "asked by the user": [has(each, FIRST) for each in asked_about("own", texts["own"])],
        "told a rule": [has(each, RULE) for each in said_about("rule", texts["rule"])],
        "no rule in a fact": [not has(each, RULE) for each in facts],
        "rules captured": [*map(bool, rules)],
        "rules that wait for approval": [any(each.steers_agent for each in made) for made in rules],
        "facts captured": [*map(bool, found(facts))],
        "small talk captured": [*map(bool, found(texts["small"]))],
        "excerpts with the answer": excerpts(texts),
    }


def has(text: str, trait: int) -> bool:
    """Return whether a text has a trait."""
    return bool(READER.traits_of(text, text.split()) & trait)


def excerpts(texts: Texts) -> list[bool]:
    """Return for each question whether the excerpt of a memory about twelve persons has the answer about one."""
    found = []
    for half in (0, 1):
        known = [about(texts, half, "who", kind, person) for person, kind in enumerate(sorted(texts["who"]))]
        for place, (said, question) in enumerate(known):
            others = [known[(place + step) % len(known)][0][0] for step in range(-4, LONG - 4)]
            text = " ".join(others)
            memory = Memory(
                id=1, hash="", title=text, owner=OWNER, created_at=EARLY, updated_at=EARLY,
                token_count=estimate_tokens(text),
            )  # fmt: skip
            found.append(said[0] in excerpt(Hit(memory=memory, score=1.0), question))
    return found


def main() -> int:
    """Measure, print, and return 1 if a target is missed."""
    targets = Targets()
    print(machine("numpy", "onnxruntime", "tokenizers"))
    cases = {language: conversations(language) for language in LANGUAGES}
    for language, each in cases.items():
        memories = sum(len(case.items) for case in each)
        print(f"{language}: {len(each)} users, {memories} memories, sha256 {digest(each)}")
    e5, wordllama = e5_small(), static()
    kept = Path(os.environ[VECTORS]) if os.environ.get(VECTORS) else None
    if e5 is not None and kept is not None:
        e5.load(kept)
    made = {"e5-small": e5, "static": wordllama}
    embedders = {"words only": None} | {name: each for name, each in made.items() if each is not None}
    with ExitStack() as stack:
        filled = {name: stack.enter_context(stores(each, list(embedders.values()))) for name, each in cases.items()}
        measure(filled, embedders, targets)
        if e5 is not None and kept is not None:
            e5.save(kept)
    heading("Recognised", LANGUAGES)
    checks = {language: recognised(language) for language in LANGUAGES}
    for name, first in checks[PLAIN].items():
        row(f"{name} (n {len(first)})", [float(np.mean(checks[language][name])) for language in LANGUAGES])
    return int(bool(targets.missed))


if __name__ == "__main__":
    sys.exit(main())
