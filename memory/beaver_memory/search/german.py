"""What German words need besides a stemmer: words without a term, forms of strong verbs, and participles. Pure."""

import re

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

_FORMS = """
    backen backte gebacken; beginnen begann begonnen; beißen biss gebissen; bekommen bekam;
    biegen bog gebogen; bieten bot geboten; binden band gebunden; bitten bat gebeten; blasen blies; bleiben blieb
    geblieben; braten briet; brechen brach gebrochen bricht brichst; brennen brannte gebrannt; bringen brachte gebracht;
    denken dachte gedacht; dürfen durfte gedurft; empfehlen empfahl empfohlen empfiehlt; essen aß gegessen isst; fahren
    fuhr gefahren fährt fährst; fallen fiel gefallen; fangen fing gefangen; finden fand gefunden; fliegen flog geflogen;
    fliehen floh geflohen; fließen floss geflossen; fressen fraß gefressen frisst; frieren fror gefroren; geben gab
    gegeben gibt gibst; gehen ging gegangen; gelingen gelang gelungen; genießen genoss genossen; geschehen geschah
    geschieht; gewinnen gewann gewonnen; gießen goss gegossen; graben grub gegraben; greifen griff gegriffen; halten
    hielt gehalten hält; hängen hing gehangen; heben hob gehoben; heißen hieß geheißen; helfen half geholfen hilft
    hilfst; kennen kannte gekannt; klingen klang geklungen; kommen kam gekommen; kriechen kroch gekrochen; laden lud
    geladen lädt; lassen ließ gelassen lässt; laufen lief gelaufen läuft läufst; leiden litt gelitten; leihen lieh
    geliehen; lesen las gelesen liest; liegen lag gelegen; lügen log gelogen; meiden mied gemieden; messen maß gemessen
    misst; mögen mochte gemocht mag magst; nehmen nahm genommen nimmt nimmst; nennen nannte genannt; pfeifen pfiff
    gepfiffen; raten riet geraten; reiben rieb gerieben; reißen riss gerissen; reiten ritt geritten; rennen rannte
    gerannt; riechen roch gerochen; rufen rief gerufen; saufen soff gesoffen; schaffen schuf; scheiden schied
    geschieden; scheinen schien geschienen; schieben schob geschoben; schießen schoss geschossen; schlafen schlief
    geschlafen schläft; schlagen schlug geschlagen schlägt; schließen schloss geschlossen; schmelzen schmolz
    geschmolzen; schneiden schnitt geschnitten; schreiben schrieb geschrieben; schreien schrie geschrien; schweigen
    schwieg geschwiegen; schwimmen schwamm geschwommen; schwören schwor geschworen; sehen sah gesehen sieht siehst;
    senden sandte gesandt; singen sang gesungen; sinken sank gesunken; sitzen saß gesessen; sprechen sprach gesprochen
    spricht sprichst; springen sprang gesprungen; stechen stach gestochen sticht; stehen stand gestanden; stehlen stahl
    gestohlen stiehlt; steigen stieg gestiegen; sterben starb gestorben stirbt; stinken stank gestunken; stoßen stieß
    gestoßen; streichen strich gestrichen; streiten stritt gestritten; tragen trug getragen trägt trägst; treffen traf
    getroffen trifft triffst; treiben trieb getrieben; treten trat getreten tritt; trinken trank getrunken; tun tat
    getan; vergessen vergaß vergisst; verlieren verlor verloren; verschwinden verschwand verschwunden;
    verzeihen verzieh; wachsen wuchs gewachsen wächst; waschen wusch gewaschen wäscht; werfen warf geworfen wirft;
    wiegen wog gewogen;    wissen wusste gewusst weiß weißt; ziehen zog gezogen; zwingen zwang gezwungen
"""

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
        entries = [entry.split() for entry in _FORMS.split(";")]
        self._bases = {folded(form): folded(base) for base, *forms in entries for form in forms}
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
