"""The words of German."""

from types import MappingProxyType

from beaver_memory.capture.vocabulary.record import Vocabulary, pattern

_COMMON = frozenset(
    """
    der die das den dem des ein eine einen einem einer eines und oder aber wenn dann so von in im an am auf zu zum zur
    für mit bei aus als ist sind war waren sein bin bist habe hast hat haben hatte hatten ich du er sie es wir ihr mich
    dich ihn uns euch mir dir ihm ihnen mein dein sein unser euer meine deine seine unsere dies diese dieser dieses
    jener da hier was welche welcher wer wie warum wo wann nicht kein keine kann könnte wird würde soll sollte darf muss
    nur sehr auch mehr alle jede man dass weil über gerade noch schon mal doch eben eigentlich also ja nein gehen geht
    machen macht werden immer nie niemals stets
    """.split()  # noqa: SIM905 - words are read better as words
)

_REQUEST = r"""
    (?:achte|antworte|beachte|beginne?|begründe|benutze?|beschreib(?:e)?|bevorzuge|bleib(?:e)?|denk(?:e)?|empfiehl
      |erklär(?:e)?|ersetze?|erwähne|erzähl(?:e)?|fang|fass(?:e)?|formatiere|formuliere|frag(?:e)?|füge?|gib|halte?
      |kürze?|lass|leg(?:e)?|liste|mach(?:e)?|markiere|nenn(?:e)?|nimm|nutze?|ordne|plane?|prüf(?:e)?|rechne|rede
      |runde|sage?|schick(?:e)?|schlag|schreib(?:e)?|setze?|sortiere|speicher(?:e)?|sprich|stell(?:e)?|such(?:e)?
      |teste?|übersetze?|verlinke|vermeide|verwende|verzichte|wähl(?:e)?|zähl(?:e)?|zeig(?:e)?|zitiere)
    \ (?:[^.!?]*\ )?(?:immer|nie|niemals|stets)\b
    """
"""The beginning of a request that holds from now on."""

GERMAN = Vocabulary(
    name="german",
    word=pattern(r"[^\W_]+(?:['\u2019][^\W_]+)*"),
    common=_COMMON,
    own=pattern(r"\b(?:ich|mich|mir|mein(?:e[mnrs]?)?|wir|uns|unser(?:e[mnrs]?)?)\b"),
    second=pattern(r"\b(?:du|dich|dir|dein(?:e[mnrs]?)?|ihr|euch|euer|eure[mnrs]?)\b"),
    moment=pattern(
        r"""
        \b(?: gestern | vorgestern | morgen | übermorgen | neulich | kürzlich | seit | heute\ abend
          | vor\ \w+\ (?:tag|tagen|woche|wochen|monat|monaten|jahr|jahren)
          | (?:letzte[nrs]?|nächste[nrs]?|diese[nrs]?|kommende[nrs]?)\ (?:woche|monat|jahr|nacht|wochenende|sommer
              |winter
              |frühling|herbst|quartal|montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonntag)
          | januar | februar | märz | april | mai | juni | juli | august | september | oktober | november | dezember
          | (?:19|20)\d\d )\b
        """
    ),
    event=pattern(
        r"""
        \b(?:ich|wir|er|sie|es|man)\ (?:habe|haben|hat|hatte|hatten|bin|sind|ist|war|waren|ging|kam|fand|sah|wurde
            |wurden)\b
        | \b(?:habe|haben|hat|hatte|bin|sind|ist)\ (?:ich|wir|er|sie|es)\b | \bge\w+(?:t|en)\b(?=[.!,;]|$)
        """
    ),
    amount=pattern(
        r"""
        \b(?: \d[\d.,:%]* | zwei | drei | vier | fünf | sechs | sieben | acht | neun | zehn | dutzend | paar | einige
          | mehrere | hundert | tausend )\b
        """
    ),
    name_=None,
    praise=pattern(
        r"""
        \b(?: wow | super | toll | klasse | prima | cool | schön(?:e[nrs]?)? | danke(?:schön)? | bitte | glückwunsch
          | freut | freue | genau | stimmt | richtig | klar | sicher | gut | großartig | fantastisch | wunderbar | hallo
          | hey | hi | tschüss | bis | später | glück | hoffe | liebe | ok | okay )\b
        """
    ),
    vague=pattern(
        r"""
        \b(?: wichtig | reise | unterstützung | positiv | hilft | motivier\w+ | freude | momente? | erinnerungen | leben
          | alles | dinge? | sachen? | gefühl | fühle | immer | unterschied | wert | besonders | welt | leute
              | zeit | kraft
          | mut | viel | viele | tag )\b
        """
    ),
    request=pattern(
        r"""
        [,;\u2014-]\ *(?:(?:und|also|aber|oder)\ )?(?:
            (?:kannst|könntest|würdest|willst|soll|sollte|kann)\ (?:du|ich|wir)\b
          | (?:was|wie|warum|wo|welche[rs]?|wer|wann)\b.*\? | (?:bitte\ )?(?:hilf|sag|zeig|gib|erklär)\w*\ mir\b )
        """
    ),
    questions=pattern(
        r"""
        ^\W*(?:(?:und|also|aber|oder|hallo|ok(?:ay)?)\b[\ ,]*)*
        (?: (?:was|wann|wo|wohin|woher|womit|wer|wem|wen|wessen|welche[mnrs]?|warum|wieso|weshalb|wie|seit\ wann)\b
          | \w+\ (?:ich|wir|mein(?:e[mnrs]?)?|unser(?:e[mnrs]?)?)\b )
        """
    ),
    asked=pattern(
        r"""
        \b(?: (?:bitte\ )?(?:merk(?:e)?\ dir|denk(?:e)?\ (?:bitte\ )?daran|vergiss\ (?:bitte\ )?nicht|notier(?:e)?)
              \ *(?:bitte\ *)?(?:,?\ *dass\b | [:,-])\ * | (?:zur\ info|nur\ zur\ info)\ *[:,-] )\s*
        """
    ),
    instructs=pattern(
        r"""
        ^\W*(?:bitte\ |ab\ jetzt\ |von\ nun\ an\ |künftig\ |in\ zukunft\ )*
        (?: (?:immer|nie|niemals|stets)\b(?!\ (?:wenn|noch|mehr|wieder)\b)
          | (?:antworte|schreib(?:e)?|benutze?|verwende|nutze|nenn(?:e)?\ mich|formatiere|vermeide|halte?|sprich|rede
              |erklär(?:e)?|sage?|formuliere|verzichte|duze?|sieze?|gib|fass(?:e)?|lass|mach(?:e)?|zeig(?:e)?)\b
          | """
        + _REQUEST
        + r"""
          | keine\ \w+\ (?:benutzen|verwenden|schreiben)\b )
        | \bdu\ (?:sollst|musst|darfst|solltest)\b | \bdeine\ antwort(?:en)?\b
        """
    ),
    kinds=MappingProxyType(
        {
            "rule": pattern(
                r"""
                ^\W*(?:bitte\ )?(?:immer|nie|niemals)\ \w | \b(?:ab\ jetzt|von\ nun\ an|ab\ sofort|künftig
                    |in\ zukunft)\b
                | \b(?:wir|ihr|man|alle)\ \w+\ (?:immer|nie|niemals)\b | \bdarf\ nicht\b | \bdürfen\ nicht\b
                | \b(?:ist|sind)\ (?:verboten|pflicht|vorgeschrieben|nicht\ erlaubt)\b | \b(?:die
                    |unsere)\ regel\ (?:ist|lautet)\b
                """
            ),
            "fix": pattern(
                r"""
                \b(?:behoben|gelöst|repariert)\b | \bdie\ (?:lösung|ursache)\ (?:war|ist)\b
                    | \b(?:es\ )?lag\ (?:es\ )?(?:an|am|daran)\b
                | \bfunktioniert\ (?:jetzt|wieder)\b | \b(?:das\ problem|der\ fehler)\ war\b
                """
            ),
            "decision": pattern(
                r"""
                \b(?:entschieden|beschlossen|geeinigt|festgelegt)\b | \b(?:wir|ich)\ (?:nehmen|nehme|bleiben|bleibe)\b
                | \b(?:wir|ich)\ (?:wechseln|wechsle|steigen|steige)\b | \b(?:umgestiegen|umgestellt|gewechselt)\b
                | \bdie\ entscheidung\ (?:ist|war|lautet)\b
                """
            ),
            "preference": pattern(
                r"""
                \b(?:ich|wir)\ (?:mag|mögen|liebe|lieben|hasse|hassen|bevorzuge|bevorzugen|vermeide)\b
                | \b(?:mag|hätte|trinke|esse|nutze|arbeite|lese|höre|spiele)\ (?:ich\ )?(?:\w+\ ){0,3}(?:lieber
                    |gern|gerne|am\ liebsten)\b
                | \bmein(?:e|en)?\ lieblings\w+ | \bich\ bin\ (?:\w+\ )?(?:fan\ von|allergisch|vegan|vegetarier\w*)\b
                """
            ),
            "todo": pattern(
                r"""
                ^\W*(?:todo|aufgabe)\b | \berinnere\ mich\b | \b(?:ich|wir)\ (?:muss|müssen|sollte|sollten)\b
                | \b(?:muss|müssen)\ (?:ich|wir)\b
                """
            ),
        }
    ),
    profile=pattern(
        r"""
        \b(?:mein|meine|unser|unsere)\ (?:[\w-]+\ ){1,3}(?:ist|sind|war|waren|heißt|heißen)\b
        | \bich\ (?:heiße|bin|wohne|lebe|arbeite|studiere|unterrichte|habe|spiele|spreche|fahre|nutze|benutze
            |komme\ aus)\b
        | \bwir\ (?:wohnen|leben|arbeiten|haben|nutzen|benutzen|verwenden)\b | \bnenn(?:e)?\ mich\b
        """
    ),
    lasting=pattern(
        r"""
        \b(?: allergi\w* | \w*intoleran\w* | unverträglich\w* | vertrage | vegan\w* | vegetari\w+ | zöliakie
          | asthma | diabet\w+
          | epilep\w+ | schwanger | blutgruppe | geburtstag | \d+\ ?mg )\b
        | \bich\ (?:jetzt\ )?(?:heiße|wohne|lebe|arbeite|studiere|unterrichte|esse|trinke|rauche|nutze|benutze
          |verwende|mag|hasse|liebe|bevorzuge
            |spreche|spiele|fahre|lerne|trage|nehme|lese|miete|koche|trainiere|schlafe|laufe|gehe\ (?:zum|zur|in|ins)
              |verdiene)\ (?!es\b|das\b|dies\w*|sie\b|ihn\b)\w
        | \bich\ bin\ (?:jetzt\ |seit\ \w+\ |ein(?:e|en)?\ )*(?:(?-i:[A-ZÄÖÜ])\w+ | \d+ | verheiratet | ledig
          | geschieden | verlobt | aus\b
            | umgezogen | selbstständig | rentner\w* | \w+händer\w* | farbenblind)
        | \bich\ habe\ (?:eine?n?|keine?n?|zwei|drei|\d+)\ (?!frage|problem|idee|fehler|moment|zeit|ahnung|termin
          |kopf|hunger|durst)\w
        | \b(?:ich|wir)\ (?:habe|haben|bin|sind)\ .*(?:aufgehört|gekündigt|geheiratet|gekauft|verkauft|gewechselt
          |gebrochen|umgezogen|gezogen
            |entschieden|beschlossen|geeinigt|umgestellt|adoptiert|bekommen)\b
        | \bwir\ (?:jetzt\ )?(?:nutzen|benutzen|verwenden|wohnen|leben|ziehen|haben\ (?:eine?n?|zwei|drei|\d+))\ \w
        | ^\W*(?:mein|unser)\w*\ (?:[\w-]+\ ){1,3}?(?:ist|sind|war|heißt|heißen|wohnt|wohnen|lebt|leben|arbeitet|hat
          |haben|studiert|mag|spielt
            |spricht|beginnt|kommt|geht|gehen|liegt|liegen|frisst|isst|läuft|fährt)\b
        | ^\W*(?:(?:der|die|das|unser|unsere)\ )?(?-i:[A-ZÄÖÜ])[\w-]+(?:\ und\ (?-i:[A-ZÄÖÜ])\w+)?
          \ (?: heißt | wohnt | leitet | übernimmt | verlässt | arbeitet | studiert | will | braucht
            | ist\ (?:jetzt\ )?(?:mein|unser)\w*
            | (?:ist|sind|wurde|hat|beginnt|startet|endet|läuft|fällt|zieht)\ .*(?:\d|(?:mon|diens|mittwoch|donners
              |frei|sams|sonn)(?:tag)?\b
            |verschoben|verlängert|gezogen|gewechselt) )
        """
    ),
    standing=pattern(
        r"""
        ^\W*(?:bitte\ |ab\ jetzt\ |von\ nun\ an\ |künftig\ |in\ zukunft\ )*
        (?: nenn(?:e)?\ mich\ \w | (?:immer|nie|niemals)\ \w | (?:antworte?
          |schreib(?:e)?)\ (?:mir\ )?(?:immer\ |nur\ )?(?:auf|in|kurz)\b
          | (?:benutze?|verwende|nutze)\ (?:immer\ |nur\ |keine?n?\ )?(?!den\b|die\b|das\b|dies\w*|eine?n?\b|es\b)\w
          | """
        + _REQUEST
        + r"""
          | du\ (?:sollst|musst|darfst|solltest)\ (?:[^.!?]*\ )?(?:immer|nie|niemals|stets)\b
          | halte?\ (?:deine|alle)\ antworten\b
          | (?:duze?|sieze?)\ mich\b | keine\ \w+\ (?:benutzen|verwenden|schreiben) )
        """
    ),
    passing=pattern(
        r"""
        ^\W*(?:(?:und|aber|also|jetzt|nun|na|ach),?\ )*(?:es|(?:das|dies\w*)\ (?!(?-i:[A-ZÄÖÜ]))|hier|da|dort|alles
          |nichts|lass(?!\ (?:[^.!?]*\ )?(?:immer|nie|niemals|stets)\b))\b
        | \b(?:es|das|dies\w*)\W*$ | \b(?:gerade|gleich|heute|kurz|zeile\ \d+)\b | !\W*$
        """
    ),
    doubt=pattern(r"\b(?:vielleicht|eventuell|wahrscheinlich|glaube|denke|nicht\ sicher|könnte|frage\ mich)\b"),
    hypothetical=pattern(
        r"""
        ^\W*(?:angenommen|stell\ dir\ vor|stellen\ wir\ uns\ vor|mal\ angenommen|was\ wäre,?\ wenn|gesetzt\ den\ fall)\b
        | \b(?:wenn|falls)\ (?:ich|wir|mein\w*|unser\w*)\b
          .*\b(?:würde|würden|wäre|wären|hätte|hätten|könnte|könnten|\w+te|äße|ginge|käme|zöge|führe|gäbe)\b
        | \b(?:würde|würden|wäre|hätte|könnte)\ (?:ich|wir)\b.*\b(?:wenn|falls)\b
        | \b(?:wäre|hätte)\ ich\b.*\bwürde\b
        """
    ),
    story=pattern(
        r"""
        \bes\ war\ einmal\b | ^\W*(?:die\ )?(?:geschichte|märchen|roman|kapitel\ \w+)\s*[:\n]
        | ^\W*(?:bitte\ |kannst\ du\ )*(?:schreib|schreibe|erzähl|erzähle)\ (?:mir\ |uns\ )?
          (?:eine?n?|die|das)\ (?:\w+\ ){0,3}(?:geschichte|märchen|gedicht|roman|szene|dialog|lied)\b
        """
    ),
    task_text=pattern(
        r"""
        ^\W*(?:(?:bitte|kannst\ du|könntest\ du)\ )*(?:übersetz\w*|korrigier\w*|formulier\w*)\b[^.\n?]{0,80}[:\n?]
        """
    ),
    reports=pattern(
        r"""\b(?:er|sie|es|\w+)\ (?:sagte|sagt|meinte|meint|erzählte|fragte|schrieb|schreibt|behauptet|antwortete)\b"""
    ),
)
