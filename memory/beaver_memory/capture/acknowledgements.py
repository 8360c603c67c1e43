"""Tells acknowledgements from messages: yes, no, thanks, and nothing else. Pure."""

import re

_MOST = 200
_MOST_WORDS = 6
_WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*")

_ACKNOWLEDGING = frozenset(
    """
    ok okay okey k kk yes yep yeah yup y no nope nah n thanks thank you thx ty cheers great good nice cool perfect
    excellent awesome fine sure alright right correct exactly agreed got it understood done please lgtm worked works
    ja jo nein danke gut super prima passt klar genau richtig stimmt verstanden bitte alles einverstanden sehr schön
    好 好的 好吧 好啊 好啦 谢谢 謝謝 谢谢你 多谢 是 是的 对 對 对的 嗯 嗯嗯 行 可以
    明白 明白了 知道了 了解 不 不用 不用了
    没问题 沒問題 收到 very much so a lot really that this all well oh ah sounds looks
    """.split()  # noqa: SIM905 - words are read better as words
)


def acknowledges(text: str) -> bool:
    """Return whether a text acknowledges, and says nothing else."""
    if len(text) > _MOST:
        return False
    words = _WORD.findall(text.casefold())
    return len(words) <= _MOST_WORDS and {*words} <= _ACKNOWLEDGING
