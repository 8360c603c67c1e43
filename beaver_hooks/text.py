"""What may go to a provider: text that every JSON reader and every UTF-8 encoder takes. Pure."""


def presentable(text: str) -> str:
    """Return `text` as it may go to a provider.

    A lone surrogate and a NUL become U+FFFD, so that what was there is seen to be missing; a pair of surrogates that
    belongs together becomes its character. Everything else stays, whatever its length. Idempotent.
    """
    if "\0" in text:
        text = text.replace("\0", "\ufffd")
    try:
        text.encode()
    except UnicodeEncodeError:
        # UTF-16 is where surrogates have a meaning: pairs are joined, and only lone ones are replaced.
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
