"""The command `beaver`.

`app` holds the table of commands; each is a module of this package and imported when it is called, like the groups that
plugins add. `errors` turns errors into one sentence and an exit code. `docs/reference/cli.md` is checked against
`--help`.
"""

from typing import NoReturn


def main() -> NoReturn:
    """Run the command line of this process, and end it."""
    # Late: plugins that import this package do not need the rest.
    from beaver_hooks.cli.errors import run  # noqa: PLC0415

    raise SystemExit(run())
