"""What German words need besides a stemmer: words without a term, forms of strong verbs, and participles. Pure."""

import re

from beaver_memory.search.words import irregular_forms
from beaver_memory.texts import folded

_COMMON = """
    aber alle allem allen aller alles als am an ander andere anderem anderen anderer anderes auch auf aus bei beim bin
    bis bist da dabei dadurch dafür dagegen daher damit danach daran darauf daraus darf darin darüber darum das dass
    davon davor dazu dein deine deinem deinen deiner deines dem den denen denn der deren des dessen dich die dies diese
    diesem diesen dieser dieses dir doch dort du durch ein eine einem einen einer eines er es etwa etwas euch euer eure
    eurem euren eurer eures für gegen hab habe haben habt hast hat hatte hatten hattest hattet hier hin hinter ich ihm
    ihn ihnen ihr ihre ihrem ihren ihrer ihres im in indem ins ist ja jede jedem jeden jeder jedes jene jenem jenen
    jener jenes kann kannst können könnt könnte könnten machen man manche manchem manchen mancher manches mein meine
    meinem meinen meiner meines mich mir mit muss müssen musst musste mussten nach nicht nichts noch nun nur ob oder
    ohne sehr sein seine seinem seinen seiner seines selbst sich sie sind so solche solchem solchen solcher solches soll
    sollen sollst sollte sollten sondern sonst über um und uns unser unsere unserem unseren unserer unseres unter vom
    von vor wann war waren warst warum was weil welche welchem welchen welcher welches wem wen wenn wer werde werden
    werdet weshalb wessen wie wieso wieviel wieviele will wir wird wirst wo wofür woher wohin womit woran worauf worin
    worüber wovon wovor wozu wogegen wurde wurden während würde würden zu zum zur zwar zwischen
"""

GERMAN_STOP_WORDS = frozenset(map(folded, _COMMON.split()))
"""Words that are in every German text, folded."""

_TELLING = """
    aber alle auch auf aus beim bei das dass dein deine der dich dem dir doch du ein eine einem einen einer eines
    etwas euch für hab habe haben hast hatte hatten ich ihm ihn ihnen ihr ist kann kannst können könnte könntest
    mein meine meinem meinen meiner meines mich mir mit muss nach nicht nie niemals immer noch nur oder ohne sehr
    sich sie sind soll sollen und uns unser unsere vom von wann waren warum weil welche welchem welchen welcher
    welches wem wen wenn wer werden wie wir wird wo wofür woher wohin womit wovor wogegen worin wurde zum zur zu
    über
"""

TELLING = frozenset(form for word in _TELLING.split() for form in (word, word.capitalize()))
"""Words that tell that a text is German: frequent ones that English texts hardly have."""

_PREFIXES = """
    herunter heraus herein hinaus hinein herum zurück zusammen weiter wieder statt fest fort los nach vorbei vor weg an
    auf aus ab bei da dar durch ein her hin mit nieder teil um unter zu über
"""
"""What may stand before a verb, and before the `ge` of its participle."""

_TENSE = re.compile(r"(?<=\w{3})(?:t?et|t)$")
"""The ending that the stemmer leaves of `kauft` and `arbeitete`; three letters stay."""

_REGULAR = re.compile(r"(\w*?)ge(\w{3,}?)e?t")


class GermanForms:
    """Finds the base form of a verb: of `abgeholt` `abholen`, of `ging` `gehen`."""

    def __init__(self) -> None:
        self._bases = {folded(form): folded(base) for form, base in irregular_forms("german").items()}
        self._prefixes = frozenset(map(folded, _PREFIXES.split())) | {""}
        self._split = re.compile(rf"({'|'.join(sorted(self._prefixes - {''}, key=len, reverse=True))})(\w{{3,}})")

    def base(self, word: str) -> str:
        """Return the base form of a folded word that was written small, or the word."""
        if known := self._bases.get(word):
            return known
        if (whole := _REGULAR.fullmatch(word)) and whole[1] in self._prefixes:
            return whole[1] + whole[2] + "en"
        if (parts := self._split.fullmatch(word)) and (known := self._bases.get(parts[2])):
            return parts[1] + known
        return word


def without_tense(stem: str) -> str:
    """Return a stem without the ending of a verb in the past or the third person."""
    return _TENSE.sub("", stem)
