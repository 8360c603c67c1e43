"""What Python's `readline` gives a person who types: earlier prompts by the arrow keys, completion by Tab."""

import contextlib
from collections.abc import Callable, Iterable


def set_up(prompts: Iterable[str], complete: Callable[[str], list[str]]) -> None:
    """Offer earlier prompts and completions while lines are read by `input`.

    Args:
        prompts: what was said before, oldest first.
        complete: returns what the last word of a line may become.
    """
    with contextlib.suppress(ImportError):  # not every Python has it
        import readline  # noqa: PLC0415 - only who types needs it

        for prompt in prompts:
            if "\n" not in prompt:
                readline.add_history(prompt)
        readline.set_completer_delims(" ")
        readline.set_completer(Completer(lambda: readline.get_line_buffer()[: readline.get_endidx()], complete))
        # The editor that macOS has in place of GNU readline wants other words.
        readline.parse_and_bind("bind ^I rl_complete" if "libedit" in (readline.__doc__ or "") else "tab: complete")


class Completer:
    """Answers `readline`, which asks for one completion after the other.

    Args:
        line: returns what is typed so far, up to the cursor.
        complete: see `set_up`.
    """

    def __init__(self, line: Callable[[], str], complete: Callable[[str], list[str]]) -> None:
        self._line = line
        self._complete = complete
        self._found: list[str] = []

    def __call__(self, _begun: str, number: int) -> str | None:
        """Return the completion of that number, or `None` where there are no more."""
        if number == 0:
            found = self._complete(self._line())
            # Python has switched off the blank that the editor itself would put behind a whole word.
            self._found = [f"{found[0]} "] if len(found) == 1 else found
        return self._found[number] if number < len(self._found) else None
