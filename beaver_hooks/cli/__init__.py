"""The command `beaver`.

`app` holds the table of commands; each is a module of this package, imported when it is called, and so are the groups
that plugins add. `failing` turns errors into one sentence and an exit code. `docs/reference/cli.md` is
checked against `--help`.
"""

from typing import NoReturn


def main() -> NoReturn:
    """Run the command line of this process, and end it."""
    # Late: whoever imports this package for a plugin's sake does not need the rest.
    from beaver_hooks.cli.errors import run  # noqa: PLC0415

    raise SystemExit(run())
