"""The words of English."""

import re
from types import MappingProxyType

from beaver_memory.capture.vocabulary.record import Vocabulary, pattern

_COMMON = frozenset(
    """
    a an the and or but if then so of in on at to for from with by as is are was were be been being am do does did have
    has had i you he she it we they me him her us them my your his its our their this that these those there here what
    which who whom how why when where not no can could will would shall should may might must just very really too also
    more most some any all one it's i'm you're that's don't didn't i've we're they're i'll i'd can't what's let's about
    up out like get got make know think see go going want lot even still well into over back than only because 'cause
    it'll we've he's she's there's such
    """.split()  # noqa: SIM905 - words are read better as words
)

ENGLISH = Vocabulary(
    name="english",
    word=pattern(r"[^\W_]+(?:['\u2019][^\W_]+)*"),
    common=_COMMON,
    own=pattern(
        r"""
        \b(?:i|i['\u2019](?:m|ve|d|ll)|my|me|mine|myself|we|we['\u2019](?:re|ve|d|ll)|our|ours|us)\b
        | (?:^|[.!]\ )(?:been|just|still|finally|trying|gonna|got|had|went|saw|met|took|started|working)\ \w
        """
    ),
    second=pattern(r"\b(?:you|your|yours|you['\u2019](?:re|ve|ll|d)|u|ya)\b"),
    moment=pattern(
        r"""
        \b(?: yesterday | tonight | tomorrow | ago | recently | since
          | (?:last|next|this)\ (?:week|month|year|night|weekend|summer|winter|spring|fall|autumn|quarter|sprint
              |monday|tuesday|wednesday|thursday|friday|saturday|sunday)
          | january | february | march\ \d | april | june | july | august | september | october | november | december
          | (?:19|20)\d\d )\b
        """
    ),
    event=pattern(
        r"""
        \b(?:i|we|he|she|they|it|who|i['\u2019](?:ve|d)|we['\u2019](?:ve|d))
        (?:\ \w+ly|\ also|\ just|\ even|\ already)?(?:\ had|\ have|\ has)?[ ]
        (?: \w+ed | went | got | made | took | found | saw | bought | met | had | won | lost | did | gave | began | ran
          | wrote | came | left | read | felt | told | kept | became | taught | built | sold | spent | drove
              | flew | ate
          | grew | chose | was | were | been | heard | held | caught | led | put | set | broke | hurt | quit
              | sang | hung
          | fell | sent | said | thought | brought | paid | gone | done | seen | taken | written )\b
        | \b(?:i['\u2019]m|we['\u2019]re|been|started|still)\ (?:also\ |really\ |currently\ |busy\ )?
          (?!going|feeling|having|looking|loving|getting|thinking|being)\w{2,}ing\b
        """
    ),
    amount=pattern(
        r"\b(?:\d[\d.,:%]*|two|three|four|five|six|seven|eight|nine|ten|dozen|couple|few|several|hundred|thousand)\b"
    ),
    name_=re.compile(r"(?<![.!?:]\s)(?<!^)(?<![\"\u201c(*#-])\b[A-Z][a-zA-Z]{2,}\b"),
    praise=pattern(
        r"""
        \b(?: wow | awesome | amazing | congrats | congratulations | glad | great | cool | nice | sounds?
            | thanks? | proud
          | inspiring | wonderful | fantastic | incredible | impressive | keep | yay | yeah | yep | yes | sure | totally
          | agree | exactly | right | sorry | hope | luck | appreciate | absolutely | definitely | happy | excited
              | lovely
          | good | sweet | hey | hi | hello | bye | later | care | take | oh | love )\b
        """
    ),
    vague=pattern(
        r"""
        \b(?: important | journey | support | positive | helps? | motivat\w+ | inspir\w+ | growth | joy | moments?
          | memories | meaningful | life | everything | things? | stuff | feel | feels | feeling | always | never
              | makes?
          | difference | worth | power\w* | special | way | world | people | time | strength | courage | ever | much
          | many | day )\b
        """
    ),
    request=pattern(
        r"""
        [,;\u2014-]\ *(?:(?:and|so|but|or)\ )?(?:also\ )?(?:
            (?:can|could|would|will|do|did|should)\ (?:you|i|we|u)\b | (?:what|how|why|where|which|who|when|is
                |are)\b.*\?
          | (?:please\ )?(?:help|tell|show|give|explain|suggest)\ me\b | any\ (?:ideas|tips|advice|suggestions)\b
          | here\ ?(?:'s|is|\u2019s|are)\ (?:my|the|our|what)\b )
        """
    ),
    questions=pattern(
        r"""
        ^\W*(?:(?:and|so|but|or|hey|hi|ok(?:ay)?|well)\b[\ ,]*)*
        (?:what|when|where|who|whom|whose|which|why|how|do|does|did|is|are|was|were|am|has|have|had|can|could|will|would
          |should|shall)\b
        """
    ),
    asked=pattern(
        r"""
        \b(?: (?:please\ |just\ |also\ )*(?:remember|note|keep\ in\ mind|memori[sz]e|don['\u2019]?t\ forget)
              (?:\ (?:this|that)\b\ *[:,-]? | \ *[:,-])
          | (?:make|take)\ a\ note(?:\ (?:that|of)\b)?\ *[:,-]? | (?:for\ the\ record|fyi|note\ to\ self)\ *[:,-] )\s*
        """
    ),
    instructs=pattern(
        r"""
        ^\W*(?:please\ |from\ now\ on,?\ |in\ (?:the\ )?future,?\ )*
        (?:always|never(?!\ (?:been|had|mind|again|too)\b)|(?:don['\u2019]?t|do\ not)(?!\ (?:like|have|know|think|want
            |care|really|own|eat|drink|need)\b)|stop|avoid|prefer|use|call\ me|answer|reply|respond|speak|keep|write
            |format|include)\b
        | \byou\ (?:should|must|may\ not|have\ to|need\ to|are\ to)\b
        | \byour\ (?:answers?|repl(?:y|ies)|responses?)\b
        | \bthe\ (?:answers?|repl(?:y|ies)|responses?)\ (?:should|must|have\ to|has\ to|may)\b
        """
    ),
    kinds=MappingProxyType(
        {
            "rule": pattern(
                r"""
                ^\W*(?:please\ |from\ now\ on,?\ |in\ (?:the\ )?future,?\ )*(?:always|never|do\ not\ ever
                    |don['\u2019]t\ ever)\ \w
                | \bfrom\ now\ on\b | ^\W*(?:please\ )?make\ sure\ (?:to|you)\ always\b
                | \b(?:we|you|they|everyone)\ (?:must|should)?\ ?(?:always|never)\ \w+
                | \b(?:must|may)\ not\ be\b | \b(?:is|are)\ (?:not\ allowed|forbidden|mandatory|required)\b
                | \b(?:the|our)\ (?:rule|policy|convention)\ is\b
                """
            ),
            "fix": pattern(
                r"""
                \b(?:fixed|solved|resolved)\ (?:it|this|that|the|by|with)\b | \bthe\ (?:fix|solution|root\ cause
                    |culprit)\ (?:was|is)\b
                | \bit\ (?:turned\ out|turns\ out)\b | \bworks\ (?:now|again)\ (?:after|since|because|when|that)\b
                | \b(?:problem|bug|issue|error)\ was\ (?:that|caused|because|in|due)\b
                """
            ),
            "decision": pattern(
                r"""
                \b(?:we|i|we['\u2019]ve|i['\u2019]ve|team)\ (?:have\ |has\ |just\ |finally\ |both\ |all\ )*
                  (?:decided|agreed|chose|settled|picked|opted|committed)\ (?:to|on|for|that|the|against)?\b
                | \b(?:we|i)\ (?:went|are\ going|['\u2019]re\ going|am\ going)\ with\b
                | \b(?:we|i)(?:['\u2019]ll|\ will|['\u2019]m\ going\ to|['\u2019]re\ going\ to
                    |\ are\ going\ to)\ (?:use|go\ with|switch|move|stay\ with|drop)\b
                | \b(?:the\ )?decision\ (?:is|was)\b | \b(?:we|i)(?:['\u2019]ve)?\ (?:have\ )?(?:switched|moved
                    |migrated)\ (?:from|to|over)\b
                """
            ),
            "preference": pattern(
                r"""
                \b(?:i|we)\ (?:really\ |also\ |much\ |usually\ |generally\ |personally\ |just\ |absolutely\ )*
                  (?:prefer|like|love|enjoy|hate|dislike|adore|favou?r|avoid|can['\u2019]?t\ stand)\b
                | \bmy\ (?:all-time\ |absolute\ )?favou?rite\b | \bi['\u2019]?(?:d|\ would)\ rather\b
                | \bi['\u2019]?(?:m|\ am)\ (?:a\ (?:big\ |huge\ )?fan\ of|not\ a\ fan|(?:really\ )?into|allergic
                    |vegan|vegetarian)\b
                """
            ),
            "todo": pattern(
                r"""
                ^\W*(?:todo|to-do)\b | \bremind\ me\b | \b(?:i|we)\ (?:still\ |also\ )*(?:need|have|must|ought)\ to\b
                | \bdon['\u2019]?t\ (?:let\ me\ )?forget\ to\b | \b(?:i|we)['\u2019]?(?:ve)?\ got\ to\b
                """
            ),
        }
    ),
    profile=pattern(
        r"""
        \b(?:my|our)\ (?:[\w'\u2019-]+\ ){1,3}(?:is|are|was|were)\b
        | \bi(?:['\u2019]m|\ am|\ was)\ (?:an?|from|in|at|allergic|born|married|single|\d+)\b
        | \b(?:i|we|i['\u2019]ve|we['\u2019]ve)\ (?:live|lived|work|worked|moved|study|studied|teach|taught|own
            |owned|have|had
            |play|played|speak|use|drive|got|bought|started|joined|run)\b
        | \bcall\ me\b
        """
    ),
    lasting=pattern(
        r"""
        \b(?: allergic | allerg(?:y|ies) | intoleran(?:t|ce) | vegan | vegetarian | diabet\w+ | asthma | epilep\w+
          | pregnant
          | c(?:o)?eliac | diagnosed | blood\ type | \d+\ ?mg | birthday | colou?r[ -]?blind )\b
        | \b(?:broke|fractured|sprained|tore|injured)\ (?:my|his|her)\b
        | \b(?:i|we|he|she|[a-z]+)\ (?:no\ longer|never|don['\u2019]t|do\ not|doesn['\u2019]t|does\ not|can['\u2019]t
          |cannot)
          \ (?:eat|drink|smoke|use|like|drive|wear|speak|have\ (?:dairy|gluten|nuts|milk|sugar|any|kids|children)|work
            |celebrate)\b
        | \b(?:i|we)(?:\ (?:only|always|usually|mostly|mainly|still|also|both|now|really))*
          \ (?:live|work|use|prefer|drive|play|speak|wear|support|study|teach|own|hate|dislike|like|love|collect|eat
            |drink|take
            |deploy|host|follow|code|rent|cook|bake|keep|run|commute|cycle|walk|swim|train|volunteer|subscribe|report
              |earn|owe|grow|track
            |go\ to|sleep|order)
          \ (?!it\b|this\b|that\b|these\b|those\b|them\b|him\b|her\b|how\b|what\b|to\ see\b|the\ (?:first|second|last
            |other|idea)\b)\w
        | \b(?:i|we)(?:['\u2019]ve|\ have|\ had)?(?:\ \w+ly|\ just|\ also|\ now)*
          \ (?: moved | switched | migrated | quit | retired | graduated | joined | adopted | bought | sold | hired
            | inherited
            | decided | agreed\ (?:on|to) | chose | settled\ on | picked | dropped | renamed | stopped\ \w+ing
              | given\ up
            | gave\ up | left\ (?!it\b|the\ (?:file|line)) | became | turned\ (?:\d+|\w+ty|\w+teen)\b
            | start(?:ed)?\ (?:an?|my|as|at|working|using|learning|taking|school|university|college)\b
            | got\ (?:married|divorced|engaged|promoted|fired|hired|laid\ off|an?\ \w) )
        | \b(?:i|we|he|she|[a-z]+)\ (?:was|were|got|has\ been|have\ been|is|are)\ (?:just\ )?
          (?:promoted|hired|fired|laid\ off|born|divorced|married|engaged|retired|widowed)\b
        | \b(?:i['\u2019]m|i\ am|we['\u2019]re|we\ are)\ (?:now\ |currently\ |still\ |originally\ )*
          (?: an?\ (?!bit\b|little\b|lot\b|mess\b|few\b|huge\b) | from\b | \d+\b | \w+-(?:handed|employed|sighted)\b
            | married\b
            | single\b | divorced\b | retired\b | unemployed\b | deaf\b | blind\b | based\b | learning\b
              | studying\b | living\ in\b
            | working\ (?:at|for|as)\b | moving\ to\b | responsible\b | in\ charge\b | on\ \w+\ v?\d )
        | \b(?:i|we)\ have\ (?:an?|no|two|three|four|five|\d+|type|high|low|chronic)\ (?!question|problem|issue|idea
          |doubt
          |request|error|bug|feeling|minute|moment|meeting|call|plan|look|typo|few\b|lot\b|clue|time\b|hunch
            |headache)\w
        | ^\W*(?:my|our)\ (?:[\w'\u2019-]+\ ){1,4}?
          (?:is|are|was|were|has|have|had|lives?|works?|moved|eats?|goes|drinks?|starts?|started|died|got|leaves?
            |runs?|speaks?|studies|uses?|loves?
            |likes?|hates?|prefers?|plays?|teaches|wants|needs|turned|passed|retired|can['\u2019]t)\b
        | ^\W*(?:the|our)\ (?:[\w'\u2019-]+\ ){1,4}?(?:wants|needs|requires|insists|expects|prefers
          |uses)\ (?!to\ be\b)\w
        | \b(?:is|are)\ (?:protected|deprecated|mandatory|required|forbidden|confidential|written\ in|called|named)\b
        | ^\W*(?!every|some|any|no|what|that|there|this|it\b|they\b|you\b)[a-z]+(?:\ and\ [a-z]+)?
          \ (?: (?:has\ )?moved\ to | lives\ in | works\ (?:at|for|as|in) | joined | left\ (?:the|us|for) | leads
            | manages | owns | took\ over
            | studies | speaks | prefers | needs?\ [a-z] | got\ (?:married|divorced|engaged|promoted) | is\ (?:my
              |our)\b
            | is\ the\ (?:\w+\ )?(?:owner|lead|manager|boss|designer|client|customer|contact|architect|head) | died
              | passed\ away )\b
        """
    ),
    standing=pattern(
        r"""
        ^\W*(?:please\ |from\ now\ on,?\ |in\ (?:the\ )?future,?\ )*
        (?: call\ me\ (?!back\b|when\b|if\b|later\b|a\b|crazy\b)\w | (?:always|never)\ (?!mind\b|again\b|give\ up
          |here\b|too\b|stop\b|been\b)\w+\ \w
          | (?:don['\u2019]t|do\ not)\ (?:ever\ )?(?:use|add|write|call|push|commit|send|mention|suggest|include
            |deploy|schedule)
            \ (?!it\b|this\b|that\b|the\b|any\ more\b)\w
          | use\ (?!it\b|this\b|that\b|the\b|an?\b|another\b|my\b|your\b|both\b)\w
          | write\ (?!it\b|this\b|that\b|the\b|an?\b|another\b|me\b|down\b|some\b|to\b|\d|two\b|three\b|more\b)\w
          | (?:answer|reply|respond|speak)\ (?:to\ me\ )?(?:only\ |always\ )?(?:in|with|briefly)\b
          | keep\ (?:your\ |all\ |the\ )?(?:answers?|replies|responses?|explanations?|sentences?|commits?|messages?
            |functions?|lines
            |comments?)\b
          | (?:avoid|prefer)\ (?!it\b|this\b|that\b|the\b)\w
          | you\ (?:should|must|have\ to|need\ to|are\ to)\ (?:always|never)\ \w )
        """
    ),
    passing=pattern(
        r"""
        ^\W*(?:(?:and|but|so|now|oh|yeah|well|sorry|thanks|wow),?\ )*
          (?:it|that|this|these|those|there|here|they|what|nothing|everything|something|let['\u2019]?s?)\b
        | ^\W*\w+\ (?:it|this|that|them)\b
        | \b(?:it|this|that|these|those|them|ones?)\W*$ | \b(?:right\ now|today|tonight|so\ (?:much|far|hot|cold
          |tired|hungry|bored))\b
        | ^\W*my\ (?:question|point|mistake|bad|screen|internet|connection|head|brain|computer|battery|guess|fault
          |coffee|day|last)\b
        | \b(?:line|step|part|page|question|answer|version\ above)\ \d | \b(?:typo|your)\b | !\W*$
        """
    ),
    doubt=pattern(r"\b(?:maybe|perhaps|not\ sure|might|guess|wonder(?:ing)?|probably|i\ think|if\ i)\b"),
    hypothetical=pattern(
        r"""
        ^\W*(?:suppose|imagine|pretend|hypothetically|let['\u2019]?s\ (?:say|assume|pretend)|what\ if)\b
        | \bif\ (?:only\ )?(?:i|we|my\ \w+|our\ \w+)\ (?:ever\ )?
          (?:\w+ed|were|had|was|lived|went|got|could|knew|spoke|won)\b.*\b(?:would|could|might|\w+['\u2019]d)\b
        | \b(?:i|we)(?:['\u2019]d|\ would|\ could|\ might)\b.*\bif\ (?:i|we|my|our)\b
        """
    ),
    story=pattern(
        r"""
        \bonce\ upon\ a\ time\b | ^\W*(?:the\ )?(?:story|fairy\ tale|novel|screenplay|fan\ fiction|chapter\ \w+)\s*[:\n]
        | ^\W*(?:please\ |can\ you\ |could\ you\ )*(?:write|tell|continue|finish)\ (?:me\ |us\ )?
          (?:a|an|the|this|my)\ (?:\w+\ ){0,3}(?:story|tale|novel|poem|scene|dialogue|song)\b
        """
    ),
    task_text=pattern(
        r"""
        ^\W*(?:(?:please|can\ you|could\ you|would\ you|kindly)\ )*
        (?:translate|proofread|paraphrase|rephrase)\b[^.\n?]{0,80}[:\n?]
        """
    ),
    reports=pattern(
        r"""
        \b[a-z]+\ (?:just\ |also\ )?(?:said|says|told|asked|wrote|writes|claims?|claimed|replied|answered)\b
        | \bquote\b | \bcharacter\b
        """
    ),
)
