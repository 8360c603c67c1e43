"""The features of a prompt that the recall gate uses. Pure."""

import re
from hashlib import blake2b

import attrs

from beaver_hooks_local.recall.question_kind import ORDINARY, QuestionKind, kind_of

LONGEST = 100_000
"""Characters of a prompt that are read."""

_MOST_WORDS = 6
"""Words of an acknowledgement."""

_WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*")

_ACKNOWLEDGING = frozenset(
    """
    ok okay okey k kk yes yep yeah yup y no nope nah n thanks thank you thx ty cheers great good nice cool perfect
    excellent awesome fine sure alright right correct exactly agreed got it understood done please lgtm worked works
    ja jo nein danke gut super prima passt klar genau richtig stimmt verstanden bitte alles einverstanden
    sehr schön oui non merci parfait bien d'accord sí si vale gracias perfecto claro sim não obrigado obrigada
    grazie va bene
    好 好的 好吧 好啊 好啦 谢谢 谢谢你 多谢 是 是的 对 对的 嗯 嗯嗯 行
    可以 明白 明白了 知道了 了解 不 不用 不用了 没问题 收到
    はい いいえ ありがとう 了解です
    """.split()  # noqa: SIM905 - words are read better as words
)

_BESIDE = frozenset(
    {"very", "much", "so", "a", "lot", "really", "that", "this", "it", "all", "well", "oh", "ah", "sounds", "looks"}
)
"""Words that an acknowledgement may contain, and that alone are none."""

_EARLIER = re.compile(
    r"""
    \b(?:
        continue | resume | carry\ on | (?:pick|take)\ (?:it|this|that)?\ ?up | (?:we|i|you)\ (?:left|leave)\ off
      | last\ (?:time|session|week|month|night|conversation|chat) | previous(?:ly)? | earlier | yesterday
      | the\ other\ day | were\ we
      | (?:as|like|same\ as)\ (?:before|usual|always|last\ time) | (?:do\ you\ |you\ )?remember | recall | remind\ me
      | (?:what|did|have|had)\ (?:did\ )?(?:we|i|you)\ (?:decide|agree|discuss|talk|say|said|tell|told|choose|chose|do)
      | (?:we|i|you)\ (?:decided|agreed|discussed|talked|said|told|chose|settled)
      | weiter(?:machen|arbeiten|gehen)? | fort(?:setzen|fahren) | mach(?:en\ wir)?\ weiter
      | letzte[smnr]?\ (?:mal|woche|sitzung|gespräch|monat) | zuletzt | vorhin | gestern | neulich | damals
      | bisher
      | wie\ (?:immer|vorher|zuvor|gehabt|üblich|besprochen|vereinbart|beim\ letzten) | erinner\w*
      | (?:hatten|haben)\ wir | la\ dernière\ fois | comme\ (?:avant|d'habitude) | souviens | rappelle | hier\ on
      | continúa | la\ última\ vez | como\ (?:antes|siempre) | recuerda[s]? | ayer
    )\b
    | 继续 | 繼續 | 上次 | 上回 | 之前 | 以前 | 记得 | 記得 | 昨天 | 刚才 | 剛才 | 照旧 | 老样子
    | 我们(?:说|讨论|决定|定)过? | 続き | 前回 | 覚えて | この前
    """,
    re.VERBOSE,
)


@attrs.frozen(kw_only=True)
class PromptFeatures:
    """The features of a prompt.

    Attributes:
        fingerprint: the same for prompts that differ in case and blanks only.
        terms: its terms, by the analyser of the index.
        wordless: it has neither a letter nor a digit.
        acknowledges: it says yes, no or thanks, and nothing else.
        refers_back: it refers to earlier work.
        by_tool: a tool has caused the turn, not a person.
        kind: the kind of its question.
    """

    fingerprint: str
    terms: frozenset[int] = frozenset()
    wordless: bool = False
    acknowledges: bool = False
    refers_back: bool = False
    by_tool: bool = False
    kind: QuestionKind = ORDINARY


def read(prompt: str, terms: frozenset[int] = frozenset(), *, by_tool: bool = False) -> PromptFeatures:
    """Return the features of a prompt.

    Args:
        prompt: its text.
        terms: its terms, by the analyser of the index.
        by_tool: a tool has caused the turn.
    """
    line = " ".join(prompt[:LONGEST].casefold().split())
    return PromptFeatures(
        fingerprint=fingerprint(line),
        terms=terms,
        wordless=_WORD.search(line) is None,
        acknowledges=_acknowledges(line),
        refers_back=_EARLIER.search(line) is not None,
        by_tool=by_tool,
        kind=kind_of(line),
    )


def fingerprint(line: str) -> str:
    """Return a digest of a text, which does not reveal the text."""
    return blake2b(line.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _acknowledges(line: str) -> bool:
    # A question is no acknowledgement, however short.
    if "?" in line or "\uff1f" in line:
        return False
    words = _WORD.findall(line[:200]) if len(line) <= 200 else []  # noqa: PLR2004 - longer ones are none
    return 0 < len(words) <= _MOST_WORDS and {*words} <= _ACKNOWLEDGING | _BESIDE and not {*words} <= _BESIDE
