"""An estimate of the tokens of a text, near enough to keep a budget, without a tokenizer.

The estimate is four ASCII characters to a token; a character that UTF-8 writes in two bytes (Latin with
accents, Greek, Cyrillic, Hebrew, Arabic) counts for 5/8 of one, one of three bytes (Chinese, Japanese,
Korean, Thai, the Indic scripts) for one, and one of four bytes (emoji) for 11/8; the sum is rounded up. It
is meant for prose. For base64, minified code and rows of punctuation a real tokenizer counts twice as many
and more.
"""


def estimate_tokens(text: str) -> int:
    """Return about how many tokens `text` costs.

    Monotone: a longer text never costs less than a part of it. Subadditive: a text costs at most what its
    parts do. Plain ASCII takes no time at all; any `str` is accepted, lone surrogates included.
    """
    if text.isascii():
        return (len(text) + 3) // 4
    size = len(text.encode("utf-8", "surrogatepass"))
    # Each byte beyond a character's first adds 3/8 to the 2/8 of the character itself.
    return (2 * len(text) + 3 * (size - len(text)) + 7) // 8
