"""Finds candidates by rules, without a model: what a message says, in the user's own words. Pure.

1. Statements of the user only: no code, no quoted lines, no `<private>` span, no acknowledgement.
2. What the user asks to be remembered is a candidate of its own, whatever its length.
3. A message whose features reach the least confidence becomes one candidate of the kind of its strongest phrase. Rules,
   decisions, fixes and to-dos in it, which hold by themselves, become candidates of their own.
4. Of a sentence that asks, the statement before the request is kept, and the request left out. A message that only
   asks, about the speaker's own matters and with enough substance, is a fact: what the speaker works on. A short
   question without a statement is none: "Where did I live last year?"
"""

from collections.abc import Iterable, Iterator, Sequence

import attrs

from beaver_memory.capture.features import STRENGTHS, Features, content_words, kind_of, measured
from beaver_memory.capture.records import LONGEST, Candidate, Extraction, Kind, Utterance
from beaver_memory.capture.sentences import Sentence, sentences
from beaver_memory.capture.short_statements import acknowledges, lasts, may_change
from beaver_memory.capture.vocabulary import Vocabulary, vocabulary_of

LEAST_CONFIDENCE = 0.5
"""The confidence of a message that is just worth keeping."""

ASKED = 0.95
"""The confidence of a statement that the user asks to keep."""

WEAK = ("weak",)
"""The cues of a statement that is worth keeping only if it changes a memory."""

MOST_WEAK = 8
"""Weak statements of an extraction; the newest ones."""

EXTRACTED = frozenset({"user", "document"})
"""The voices whose statements are candidates. The claims of the assistant and the output of tools are not."""

OF_ITS_OWN = frozenset({"rule", "decision", "fix", "todo"})
"""Kinds of sentences that become candidates of their own."""

_SURE: dict[Kind, float] = {"rule": 0.8, "fix": 0.75, "decision": 0.75, "todo": 0.65, "preference": 0.7, "fact": 0.5}
"""The least confidence of a kept candidate of each kind."""

_DOUBT = 0.15
_MOST_WORDS = 12
_LONGEST_WORD = 40
_OPENING = 8
"""Characters in which a sentence that asks begins with a statement of the speaker about themselves."""

SHORT_QUESTION = 8
"""Words of a question that tells nothing about its speaker."""

_TELLING = 2
"""Words with content below which a sentence of a kept message is left out."""


@attrs.frozen(kw_only=True)
class RuleExtractor:
    """Finds candidates by rules.

    Attributes:
        least_confidence: of a message that becomes a candidate.
    """

    least_confidence: float = LEAST_CONFIDENCE

    def extract(self, said: Sequence[Utterance]) -> Extraction:
        """Return the candidates in what the user and documents said, the most certain first.

        Args:
            said: the texts of a conversation, in order.
        """
        found = [
            attrs.evolve(each, external=utterance.external, place=place)
            for place, utterance in enumerate(said)
            if utterance.voice in EXTRACTED and not utterance.is_context
            for each in self._candidates(utterance, _question(said[:place]))
        ]
        weak = [each for each in found if each.cues == WEAK]
        sure = [each for each in found if each.cues != WEAK]
        return Extraction(candidates=sorted(sure, key=lambda each: -each.confidence), weak=weak[-MOST_WEAK:])

    def _candidates(self, utterance: Utterance, question: str) -> Iterator[Candidate]:
        text = utterance.text
        if acknowledges(text):
            return
        words = vocabulary_of(text)
        asked, rest = _asked(sentences(text), words)
        said = _meant([part for each in rest for part in _parts(each, words)], words)
        features = measured(said, words, answers=bool(question))
        short = _short(rest) if _is_own(utterance) else ()
        kept = _kept(said, features, words) if features.confidence >= self.least_confidence else short
        for each in (*asked, *kept):
            yield attrs.evolve(each, keywords=_other_words(question, each.text))


def _is_own(utterance: Utterance) -> bool:
    """Return whether a text is the user's own, rather than one from outside."""
    return utterance.voice == "user" and not utterance.external


def asks_to_remember(text: str) -> bool:
    """Return whether a message asks to remember a statement in it."""
    return bool(asked_statements(text))


def asked_statements(text: str) -> list[str]:
    """Return the statements that a message asks to remember."""
    return asked_among(sentences(text), text)


def asked_among(said: Sequence[Sentence], text: str) -> list[str]:
    """Return the statements that a message asks to remember, from its sentences."""
    return [each.text for each in _asked(said, vocabulary_of(text))[0]]


def _question(before: Sequence[Utterance]) -> str:
    """Return the last question in the text before a message, empty without one."""
    asked = [each.text for each in sentences(before[-1].text) if each.is_question] if before else []
    return asked[-1] if asked else ""


def _other_words(question: str, statement: str) -> tuple[str, ...]:
    """Return the words of a question that the statement which answers it lacks, for searches."""
    words = vocabulary_of(question)
    found = content_words(question, words) - content_words(statement, words)
    return tuple(sorted(word for word in found if len(word) <= _LONGEST_WORD)[:_MOST_WORDS])


def _asked(said: Sequence[Sentence], words: Vocabulary) -> tuple[list[Candidate], list[Sentence]]:
    """Return what the user asks to be remembered, and the other sentences."""
    asked, rest = list[Candidate](), list[Sentence]()
    for each in said:
        begin = words.asked.search(each.text)
        statement = each.text[begin.end() :].strip(" ,:\uff0c\uff1a") if begin else ""
        if each.is_question or not content_words(statement, words):
            rest.append(each)
            continue
        kind = kind_of(statement, words) or "fact"
        asked.append(_candidate(kind, statement, ASKED, ("asked",), words, explicit=True))
    return asked, rest


def _parts(sentence: Sentence, words: Vocabulary) -> Iterator[Sentence]:
    """Yield the statement of a sentence that asks, and its request; any other sentence as it is."""
    request = words.request.search(sentence.text) if sentence.is_question else None
    if request is None:
        opens = words.own.search(sentence.text[:_OPENING]) and not _only_asks(sentence.text, words)
        yield attrs.evolve(sentence, is_question=sentence.is_question and not opens)
        return
    yield Sentence(text=sentence.text[: request.start()])
    yield Sentence(text=sentence.text[request.start() :], is_question=True)


def _meant(said: Sequence[Sentence], words: Vocabulary) -> Sequence[Sentence]:
    """Return the sentences of a message that only asks about the speaker's own matters as statements. Rule 4."""
    if any(not each.is_question and _tells(each.text, words) for each in said):
        return said
    asks = [each for each in said if each.is_question and words.own.search(each.text)]
    asks = [each for each in asks if not _only_asks(each.text, words)]
    return [attrs.evolve(each, is_question=False) for each in asks] + list(said) if asks else said


def _only_asks(question: str, words: Vocabulary) -> bool:
    """Return whether a question is short, and begins as one."""
    is_short = len(words.word.findall(question)) <= SHORT_QUESTION * words.characters_per_word
    return is_short and words.questions.search(question) is not None


def _kept(said: Sequence[Sentence], features: Features, words: Vocabulary) -> Iterator[Candidate]:
    """Return the candidates of a message that is worth keeping."""
    telling = [each.text for each in said if not each.is_question and _tells(each.text, words)]
    own = [text for text in telling if kind_of(text, words) in OF_ITS_OWN] if len(telling) > 1 else []
    for text in own:
        kind = kind_of(text, words) or "fact"
        yield _candidate(kind, text, _SURE[kind], (kind,), words)
    if rest := [text for text in telling if text not in own]:
        kind = max((kind_of(text, words) or "fact" for text in rest), key=STRENGTHS.__getitem__)
        yield _candidate(kind, " ".join(rest), max(features.confidence, _SURE[kind]), features.cues, words)


def _short(said: Sequence[Sentence]) -> Iterator[Candidate]:
    """Return the candidates of a message that is not worth keeping as a whole."""
    for each, words in ((each, vocabulary_of(each.text)) for each in said):
        kind = kind_of(each.text, words) or ("preference" if words.standing.search(each.text) else "fact")
        if lasts(each, words):
            yield _candidate(kind, each.text, _SURE[kind], ("lasting",), words)
        elif may_change(each, words):
            yield _candidate(kind, each.text, _SURE[kind], WEAK, words)


def _tells(text: str, words: Vocabulary) -> bool:
    return len(content_words(text, words)) >= _TELLING * words.characters_per_word


def _candidate(
    kind: Kind, text: str, confidence: float, cues: Iterable[str], words: Vocabulary, *, explicit: bool = False
) -> Candidate:
    doubt = _DOUBT if not explicit and words.doubt.search(text) else 0.0
    return Candidate(
        kind=kind,
        text=clipped(text),
        confidence=round(max(0.0, confidence - doubt), 3),
        cues=tuple(cues),
        explicit=explicit,
        steers_agent=words.instructs.search(text) is not None,
    )


def clipped(text: str, longest: int = LONGEST) -> str:
    """Return the beginning of a text, at most `longest` characters, up to the end of a word."""
    if len(text) <= longest:
        return text
    head = text[: longest - 1]
    return (head.rsplit(None, 1)[0] if " " in head[longest // 2 :] else head) + "\u2026"
