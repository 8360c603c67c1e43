"""Makes text fit for a provider: every JSON reader and every UTF-8 encoder accepts it. Pure."""


def presentable(text: str) -> str:
    """Return `text` in a form that may go to a provider.

    A lone surrogate and a NUL become U+FFFD, so that the loss is visible; a valid pair of surrogates becomes its
    character. All other text stays, whatever its length. Idempotent.
    """
    if "\0" in text:
        text = text.replace("\0", "\ufffd")
    try:
        text.encode()
    except UnicodeEncodeError:
        # UTF-16 gives surrogates a meaning: pairs are joined, and only lone ones are replaced.
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
