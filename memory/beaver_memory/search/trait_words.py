"""Words that tell who speaks, a time, a number, a rule, and what a query asks for: English, German and Chinese."""

import re
from types import MappingProxyType

FIRST_PERSON = frozenset(
    """
    i i'm i've i'd i'll im ive my me mine myself we we're we've we'd we'll us our ours ourselves
    ich mich mir mein meine meinem meinen meiner meines meins wir uns unser unsere unserem unseren unserer unseres
    """.split()  # noqa: SIM905 - words are read better as words
)

TIMES = frozenset(
    """
    yesterday today tonight tomorrow ago last next recently since week weeks weekend month months year years days
    monday tuesday wednesday thursday friday saturday sunday
    january february march april june july august september october november december
    gestern vorgestern heute morgen übermorgen kürzlich neulich seit letzte letzten letzter letztes letztem nächste
    nächsten nächster nächstes vorige vorigen woche wochen wochenende monat monate monaten jahr jahre jahren tagen
    montag dienstag mittwoch donnerstag freitag samstag sonnabend sonntag
    januar februar märz mai juni juli oktober dezember
    """.split()  # noqa: SIM905 - words are read better as words
)

NUMBERS = frozenset(
    """
    one two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty sixty
    seventy eighty ninety dozen hundred thousand once twice couple several first second third
    zwei drei vier fünf sechs sieben acht neun zehn elf zwölf zwanzig dreissig dreißig vierzig fünfzig sechzig siebzig
    achtzig neunzig dutzend hundert tausend einmal zweimal
    dreimal paar mehrere erste ersten zweite zweiten dritte dritten
    """.split()  # noqa: SIM905 - words are read better as words
)

RULES = frozenset("always never immer nie niemals stets".split())  # noqa: SIM905 - words, as above
"""Words of a sentence that states how its speaker wants things to be: the first one, or in a request."""

REQUESTS = frozenset(
    """
    please bitte
    achte antworte beachte begrenze beginn beginne begründe behalte benenne benutz benutze berechne berücksichtige
    beschränke beschreib beschreibe bestätige bevorzuge bezieh beziehe bleib bleibe bring bringe buche denk denke
    empfiehl entferne erinnere erklär erkläre ersetze erstell erstelle erwähne erzähl erzähle fang fass fasse formatiere
    formulier formuliere frag frage füge führe geh gehe gib halt halte hilf hol hole informiere kennzeichne komm kopiere
    korrigiere kürze lad lade lass leg lege lies liste lösch lösche mach mache markiere meld melde merk merke nenn nenne
    nimm notiere nutz nutze öffne ordne pack packe plan plane prüf prüfe rechne red rede reserviere ruf rufe runde sag
    sage schau schick schicke schlag schliess schliesse schreib schreibe sende setz setze sieh sortier sortiere speicher
    speichere sprich stell stelle streich streiche such suche teil teile trag trage trenn trenne übernimm übersetz
    übersetze unterscheide verfasse vergiss vergleich vergleiche verlinke vermeid vermeide versuch versuche verwend
    verwende verzichte wähl wähle warn warne warte wechsle weis weise wiederhol wiederhole zähl zähle zeig zeige zieh
    ziehe zitier zitiere
    """.split()  # noqa: SIM905 - words are read better as words
)
"""The first words of a request. A German one has the word of a rule behind them: `Schreib mir immer ...`."""

POLITE = "sie"
"""The second word of a polite German request: `Schreiben Sie mir immer ...`."""

YEAR = re.compile(r"(?:19|20)\d\d")

_ENDS = r"\u3002\uff01\uff1f\uff1b\n.!?"
_PERSONS = "我咱他她它您你们們"

CHINESE = MappingProxyType(
    {
        "first": re.compile("[我咱俺]"),
        "time": re.compile(
            "[昨前明后後今去]天|今晚|昨晚|最近|[上下][个個]?(?:周|週|月|星期)|[去今明前]年|(?:周|週|星期)[一二三四五六日天末]"
            "|[\\d一二三四五六七八九十]+(?:年|月|日|号|號|天前|周前|週前)"
        ),
        "number": re.compile("[一二两兩三四五六七八九十百千万萬几幾][个個只隻位次年月天岁歲名家本张張条條块塊种種]"),
        # A sentence begins so; it is a request; or it has such a word and names no person by a pronoun.
        "rule": re.compile(
            rf"(?:^|[{_ENDS}])\s*(?:"
            "以后|以後|总是|總是|永远|永遠|务必|務必|一定要|不要|别|別"
            rf"|(?:请|請|[给給对對跟帮幫为為][我咱])[^{_ENDS}]*?(?:总是|總是|永远|永遠|一律|从不|從不|不要|别再|別再|只[用要能])"
            rf"|(?:[^{_ENDS}{_PERSONS}]|(?<=[给給对對跟帮幫为為替让讓叫向])[我咱])*?"
            "(?:一律|务必|務必|一定要|千万[别不]|千萬[別不]|(?:永远|永遠|绝|絕|绝对|絕對)(?:不要|别|別)|(?:总是|總是)不?要)"
            ")"
        ),
    }
)
"""What has no spaces around its words is found by patterns."""

WHEN = re.compile(
    r"\bwhen\b|\bwhat (?:date|day|time|year|month|week)\b"
    r"|\bwhich (?:date|day|year|month|week|season)\b|\bhow (?:long|recently)\b"
    r"|\bwann\b|\bwie lange\b|\b(?:welche[mnrs]?|was für ein\w*) (?:datum|tag|jahr|monat|woche|uhrzeit)\b"
    "|什么时候|什麼時候|何时|何時|哪[一]?[天年月周]|几号|幾號|几月|幾月|几点|幾點|多久|多长时间|多長時間"
)
"""Of a query in small letters, as below."""

HOW_MANY = re.compile(
    r"\bhow (?:many|much|often|old|high)\b|\bwie ?(?:viele?n?|oft|alt|hoch)\b"
    "|多少|[几幾][个個只隻位次天岁歲名家本张張条條种種]|多大"
)
