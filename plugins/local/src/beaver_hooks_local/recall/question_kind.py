"""The kinds of questions that need other memories than most: lists and counts, and questions about the past. Pure.

The patterns know English, German and Chinese. A prompt that fits none of them is an ordinary one.
"""

import re

import attrs

_MANY = re.compile(
    r"""
    \b(?:
        how\ (?:many|often) | lists?(?!\ prices?\b) | listing | all | every | each | both | enumerate | in\ total
      | altogether | summar\w+
      | (?:what|which)\ (?:kinds?|types?|sorts?|other|different|are|were)
      | (?:what|which)\ (?!was\b|does\b|has\b|is\b|this\b)\w+(?<![su])s
      | alle[nrs]? | jede[nrsm]? | sämtliche\w* | welche(?:\ [^\W\d_]\w*)?(?=\W) | wie\ ?viele? | wie\ oft | insgesamt
      | nenne?\w* | zähl\w* | auflist\w* | aufzähl\w* | liste\w* | zusammenfass\w*
      | fass(?:e|t|en)?(?=\ .{0,80}\bzusammen\b)
    )\b
    | 哪些 | 所有 | 全部 | 列出 | 列举 | (?<!是)多少(?![钱錢岁歲号號]) | 几[个次种位本天家件项]
    | 一共 | 总共 | 每[个次种天] | 分别 | 汇总 | 总结
    """,
    re.VERBOSE,
)

_PAST = re.compile(
    r"""
    \b(?:
        (?<!is\ )(?<!are\ )(?<!am\ )(?<!be\ )(?<!get\ )(?<!'m\ )used\ to | as\ of(?!\ (?:now|today)\b)
      | back\ then | former(?:ly)?
      | previous(?:ly)? | original(?:ly)? | initial(?:ly)? | at\ first | at\ (?:the|that)\ time | in\ the\ past
      | no\ longer | anymore | (?:not|\w+n't)\ [^.?!]{0,80}\bany\ more(?!\ \w) | changed
      | früher\w* | ehemal\w+ | damal\w+ | bisher\w* | ursprünglich\w* | einst | anfang(?:s|lich) | zunächst
      | nicht\ mehr | stand\ (?:vo[mn]|am) | zum\ (?:damaligen\ )?zeitpunkt | geändert
    )\b
    | 以前 | 之前 | 曾经 | 曾經 | 过去 | 過去 | 原来 | 原來 | 原先 | 当时 | 當時 | 那时 | 从前 | 截至 | 起初
    | 最初 | 不再 | 先前 | 去年 | 前年 | [\d一二两兩三四五六七八九十几幾](?:年|个月|個月|[天周])前
    | [住用叫当當做干学學养養租教]过(?!敏) | [住用叫当當做干学學养養租教]過(?!敏)
    """,
    re.VERBOSE,
)

_PAST_VERB = r"""
    \b(?: (?:was|were|did|had)(?:n't)?
      | (?:i|we|you|he|she|it|they)\ (?:\w{2,}(?<!e)ed | went | wore | drove | ate | drank | spoke | kept | slept | ran)
      | war(?:en|st|t)? | hatte(?:n|st|t)? | wurde[nst]? | hab(?:e|en|t) | hast | hat
      | (?:wohn|arbeite|leb|spiel|nutz|benutz|verwende)te(?:n|st|t)? | hiess(?:en|t)?
    )\b"""

_EARLIER = r"""
    \b(?: before | until | till | change | \w+\ ago | (?:in|on)\ (?:[^\W_]{1,9}[.,]?\ ){0,3}(?:19|20)\d\d
      | last\ (?:year|month|week|time|spring|summer|autumn|fall|winter|quarter)
      | (?:my|your|his|her|its|our|their|the|\w+'s)\ (?:old|earlier) | (?:my|your|his|her|our|their|\w+'s)\ last
      | bevor | vorher | davor | zuvor | bis | (?:im|am|anno)\ (?:[^\W_]{1,9}[.,]?\ ){0,3}(?:19|20)\d\d
      | letzte[mnrs]?\ (?:jahr|monat|woche|mal|frühling|frühjahr|sommer|herbst|winter|quartal)
      | (?:mein|dein|sein|ihr|unser|eu(?:e)?r)\w*\ (?:alt|letzt|vorig)e[mnrs]? | vor\ \w+\ (?:jahr|monat|woche|tag)\w*
    )\b"""

_PAST_BESIDE_TIME = re.compile(
    rf"(?:{_PAST_VERB})[^.?!]{{0,80}}(?:{_EARLIER}) | (?:{_EARLIER})[^.?!]{{0,80}}(?:{_PAST_VERB})"
    r"| \bdid(?:n't)?\b[^.?!]{0,80}(?<!to\ )\buse\ to\b",
    re.VERBOSE,
)
"""Words for an earlier time ask for the past beside a verb in the past only: "remind me before lunch" does not."""


@attrs.frozen(kw_only=True)
class QuestionKind:
    """The kind of a question.

    Attributes:
        many: it asks for a list or a count.
        past: it asks for what held earlier.
    """

    many: bool = False
    past: bool = False


ORDINARY = QuestionKind()
"""The kind of a question that needs no other memories than most."""


def kind_of(line: str) -> QuestionKind:
    """Return the kind of a prompt, which is given casefolded: with "ss" for the German "ß"."""
    line = line.replace("\u2019", "'")
    past = _PAST.search(line) or _PAST_BESIDE_TIME.search(line)
    return QuestionKind(many=_MANY.search(line) is not None, past=past is not None)
