"""The languages whose words have stems: how each makes a term of a word. Thread-safe."""

import threading
from collections.abc import Callable, Collection
from typing import cast

import Stemmer

from beaver_memory.search.german import GERMAN_STOP_WORDS, GermanForms, without_tense
from beaver_memory.search.words import STOP_WORDS
from beaver_toolkit.words import LONGEST

_FORMS = """
    arise arose arisen; awake awoke awoken; become became; befall befell befallen; begin began begun; behold beheld;
    bend bent; bite bitten; bleed bled; blow blew blown; break broke broken; breed bred; bring brought;
    build built; burn burnt; buy bought; catch caught; choose chose chosen; cling clung; come came;
    creep crept; deal dealt; dig dug; draw drawn; dream dreamt; drink drank drunk; drive drove driven; dwell dwelt;
    eat ate eaten; fall fell fallen; feed fed; feel felt; fight fought; find found; flee fled; fling flung;
    fly flew flown; forbid forbade forbidden; foresee foresaw foreseen; forget forgot forgotten;
    forgive forgave forgiven; forgo forwent forgone; forsake forsook forsaken; freeze froze frozen; get got gotten;
    give gave given; go went gone; grow grew grown; hang hung; hear heard; hide hid hidden; hold held; keep kept;
    kneel knelt; know knew known; lay laid; lead led; lean leant; leap leapt; learn learnt; lend lent; lie lain;
    lose lost; make made; mean meant; meet met; mislead misled; misspell misspelt; mistake mistook mistaken;
    misunderstand misunderstood; mow mown; outgrow outgrew outgrown; overcome overcame; override overrode overridden;
    overhear overheard; overrun overran; oversee oversaw overseen; oversleep overslept; overtake overtook overtaken;
    overthrow overthrew overthrown; pay paid; prove proven; rebuild rebuilt; redo redid redone; repay repaid;
    rerun reran; resell resold; rethink rethought; rewrite rewrote rewritten; ride rode ridden; ring rang;
    rise risen; run ran; say said; see seen; seek sought; sell sold; send sent; sew sewn; shake shook shaken;
    shine shone; shoot shot; show shown; shrink shrank shrunk; sing sang sung; sink sank sunk; sit sat;
    sleep slept; slide slid; sling slung; sow sown; speak spoke spoken; speed sped; spend spent; spill spilt; spin spun;
    spoil spoilt; spring sprang sprung; stand stood; steal stole stolen; stick stuck; sting stung; stink stank stunk;
    strike struck stricken; string strung; strive strove striven; swear swore sworn; sweep swept; swell swollen;
    swim swam swum; swing swung; take took taken; teach taught; tear tore torn; tell told; think thought;
    throw threw thrown; tread trod trodden; undergo underwent undergone; understand understood;
    undertake undertook undertaken; undo undid undone; unwind unwound; uphold upheld; wake woke woken; wear wore worn;
    weave wove woven; weep wept; win won; withdraw withdrew withdrawn; withhold withheld; withstand withstood;
    wring wrung; write wrote written;

    appendix appendices; businessman businessmen; businesswoman businesswomen; calf calves; child children;
    crisis crises; criterion criteria; elf elves; foot feet; fungus fungi; gentleman gentlemen; goose geese;
    grandchild grandchildren; half halves; hoof hooves; hypothesis hypotheses; index indices; knife knives; loaf loaves;
    louse lice; man men; matrix matrices; mouse mice; ox oxen; parenthesis parentheses; phenomenon phenomena;
    policeman policemen; scarf scarves; shelf shelves; stepchild stepchildren; stimulus stimuli; synopsis synopses;
    thesis theses; thief thieves; tooth teeth; vertex vertices; wife wives; wolf wolves; woman women
"""


# Left out are forms that mean something else at least as often: a noun, an adjective or the base of another verb (saw,
# left, bit, lay, rose, bore, born, bound, wound, ground, lit, rung, shed, spat, lives, leaves, axes, bases, analyses,
# dice), or a name (Drew, Dove). Words in nearly every text have no term (did, had, was), and `done` would be `do`.
# Forms that are listed in spite of another sense (found, felt, thought, led) are still found in that sense, as texts
# and questions are read alike; only the distinction from the verb is lost.
def irregular_forms() -> dict[str, str]:
    """Return the base form of each irregular form; all in small letters."""
    entries = (entry.split() for entry in _FORMS.split(";"))
    return {form: base for base, *forms in entries for form in forms}


class Language:
    """Makes terms of the words of one language.

    Args:
        algorithm: the stemmer's name.
        stop_words: words without a term.
        base: returns the base form of an irregular form in small letters, or the word.
        shortened: returns a stem without what the stemmer leaves.
    """

    def __init__(
        self,
        algorithm: str,
        stop_words: Collection[str],
        base: Callable[[str], str],
        shortened: Callable[[str], str] = str,
    ) -> None:
        self.stop_words = stop_words
        self._algorithm = algorithm
        self._base = base
        self._shortened = shortened
        self._local = threading.local()

    def root(self, word: str) -> str:
        """Return the stem of a word in small letters, or of the base of an irregular form."""
        if not word.isalpha() or len(word) >= LONGEST:
            return word[:LONGEST]
        # A stemmer is not thread-safe.
        stemmer = getattr(self._local, "stemmer", None)
        if stemmer is None:
            stemmer = self._local.stemmer = Stemmer.Stemmer(self._algorithm, 0)
        return self._shortened(cast("str", stemmer.stemWord(self._base(word))))


def english() -> Language:
    """Return English, which is also the language of a text whose language is unknown."""
    forms = irregular_forms()
    return Language("english", STOP_WORDS, lambda word: forms.get(word, word))


def german() -> Language:
    """Return German."""
    return Language("german", GERMAN_STOP_WORDS, GermanForms().base, without_tense)
