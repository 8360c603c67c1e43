"""Line editing with Python's `readline`: earlier prompts by the arrow keys, completion by Tab."""

import contextlib
from collections.abc import Callable, Iterable


def set_up(prompts: Iterable[str], complete: Callable[[str], list[str]]) -> None:
    """Offer earlier prompts and completions while lines are read by `input`.

    Args:
        prompts: the earlier prompts, oldest first.
        complete: returns the completions of the last word of a line.
    """
    with contextlib.suppress(ImportError):  # not every Python has it
        import readline  # noqa: PLC0415 - needed only for a user who types

        for prompt in prompts:
            if "\n" not in prompt:
                readline.add_history(prompt)
        readline.set_completer_delims(" ")
        readline.set_completer(Completer(lambda: readline.get_line_buffer()[: readline.get_endidx()], complete))
        # The editor that macOS has instead of GNU readline takes another command.
        readline.parse_and_bind("bind ^I rl_complete" if "libedit" in (readline.__doc__ or "") else "tab: complete")


class Completer:
    """Answers `readline`, which asks for one completion after the other.

    Args:
        line: returns the typed text up to the cursor.
        complete: see `set_up`.
    """

    def __init__(self, line: Callable[[], str], complete: Callable[[str], list[str]]) -> None:
        self._line = line
        self._complete = complete
        self._found: list[str] = []

    def __call__(self, _begun: str, number: int) -> str | None:
        """Return the completion of that number, or `None` after the last one."""
        if number == 0:
            found = self._complete(self._line())
            # Python disables the blank that the editor itself would add after a whole word.
            self._found = [f"{found[0]} "] if len(found) == 1 else found
        return self._found[number] if number < len(self._found) else None
