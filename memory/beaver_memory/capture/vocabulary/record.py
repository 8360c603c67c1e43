"""What the rules know about one language."""

import re
from collections.abc import Mapping

import attrs

from beaver_memory.capture.records import Kind

Pattern = re.Pattern[str]


def pattern(text: str) -> Pattern:
    """Return a verbose pattern that ignores case."""
    return re.compile(text, re.IGNORECASE | re.VERBOSE)


@attrs.frozen(kw_only=True)
class Vocabulary:
    """The words and phrases of one language. Patterns ignore case.

    Attributes:
        name: of the language.
        word: finds words; in a script without spaces, characters.
        common: words that say nothing by themselves.
        own: the speaker speaks of themselves.
        second: the speaker speaks to the listener.
        moment: a time at which something happens.
        event: something that a person did, or that happened.
        amount: a number in words or digits.
        name_: a name of a person, a place, a product; `None` where the script does not tell names apart.
        praise: praise, thanks, greetings: talk that carries no fact.
        vague: words of feelings and advice.
        request: where a request begins that follows a statement in one sentence.
        questions: a sentence that asks begins with a word of a question, so no statement is before it.
        asked: the user asks for the rest to be remembered.
        instructs: the sentence tells the agent how to behave.
        kinds: the phrases of each kind, the strongest kind first.
        profile: the speaker says what they are, have, do or where they live.
        lasting: what a person, a team or a project is, has, or does in general.
        standing: an instruction that holds beyond the task at hand.
        passing: the sentence is about the moment, or about the text or the task at hand.
        doubt: the speaker is not certain.
        hypothetical: the sentence tells what would be.
        story: the message tells a story, or asks for one.
        task_text: the message gives a text to work on, for example to translate.
        reports: someone else says the rest of the sentence.
        characters_per_word: how many matches of `word` make a word.
    """

    name: str
    word: Pattern
    common: frozenset[str]
    own: Pattern
    second: Pattern
    moment: Pattern
    event: Pattern
    amount: Pattern
    name_: Pattern | None
    praise: Pattern
    vague: Pattern
    request: Pattern
    questions: Pattern
    asked: Pattern
    instructs: Pattern
    kinds: Mapping[Kind, Pattern]
    profile: Pattern
    lasting: Pattern
    standing: Pattern
    passing: Pattern
    doubt: Pattern
    hypothetical: Pattern
    story: Pattern
    task_text: Pattern
    reports: Pattern
    characters_per_word: float = 1.0
