"""The kinds of questions that need other memories than most: lists and counts, and questions about the past. Pure.

The patterns know English, German and Chinese. A prompt that fits none of them is an ordinary one.
"""

import re

import attrs

_MANY = re.compile(
    r"""
    \b(?:
        how\ (?:many|often) | lists? | listing | all | every | each | both | enumerate | in\ total | altogether
      | summar\w+
      | (?:what|which)\ (?:kinds?|types?|sorts?|other|different|are|were)
      | (?:what|which)\ (?!was\b|does\b|has\b|is\b|this\b)\w+(?<![su])s
      | alle[nrs]? | jede[nrsm]? | sämtliche\w* | welche(?:\ [^\W\d_]\w*)?(?=\W) | wie\ ?viele? | wie\ oft | insgesamt
      | nenne?\w* | zähl\w* | auflist\w* | aufzähl\w* | liste\w* | zusammenfass\w* | fass\w*
    )\b
    | 哪些 | 所有 | 全部 | 列出 | 列举 | 多少 | 几[个次种位本天家件项] | 一共 | 总共 | 每[个次种天] | 分别 | 汇总 | 总结
    """,
    re.VERBOSE,
)

_PAST = re.compile(
    r"""
    \b(?:
        used?\ to | before | as\ of | back\ then | former(?:ly)? | previous(?:ly)? | original(?:ly)? | initial(?:ly)?
      | at\ first | at\ (?:the|that)\ time | in\ the\ past | no\ longer | any\ ?more | until | chang(?:e|ed|es)
      | früher\w* | vorher\w* | zuvor | bevor | davor | ehemal\w+ | damal\w+ | bisher\w* | ursprünglich\w* | einst
      | anfang(?:s|lich) | zunächst | nicht\ mehr | stand\ (?:vo[mn]|am) | zum\ (?:damaligen\ )?zeitpunkt | geändert
    )\b
    | 以前 | 之前 | 曾经 | 曾經 | 过去 | 過去 | 原来 | 原來 | 原先 | 当时 | 當時 | 那时 | 从前 | 截至 | 起初
    | 最初 | 不再 | 先前
    """,
    re.VERBOSE,
)


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
    """Return the kind of a prompt, which is given in lower case."""
    return QuestionKind(many=_MANY.search(line) is not None, past=_PAST.search(line) is not None)
