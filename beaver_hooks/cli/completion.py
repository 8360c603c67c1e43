"""`beaver completion`: the script with which a shell completes `beaver`."""

import os
from pathlib import PurePath

import click
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete

from beaver_hooks.cli.terminal import show

PROGRAM, VARIABLE = "beaver", "_BEAVER_COMPLETE"
"""The completed program, and the variable of the script: if it is set, click answers before any command runs."""

SHELLS: dict[str, type[ShellComplete]] = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}


WHERE = """
\b
How to install it:
  bash   add to ~/.bashrc:   eval "$(beaver completion bash)"
  zsh    add to ~/.zshrc, after compinit:
                             eval "$(beaver completion zsh)"
  fish   run once:
         beaver completion fish > ~/.config/fish/completions/beaver.fish
"""


@click.command(name="completion", epilog=WHERE)
@click.argument("shell", required=False, type=click.Choice(tuple(SHELLS)))
@click.option("--debug", is_flag=True, expose_value=False, help="Show the traceback of an error.")
@click.pass_context
def command(ctx: click.Context, shell: str | None) -> None:
    """Print the script with which a shell completes `beaver`.

    Without an argument it is the script for the shell that the variable SHELL names.
    """
    made = SHELLS[shell or _own_shell()](ctx.find_root().command, {}, PROGRAM, VARIABLE)
    show(made.source(), end="")


def _own_shell() -> str:
    name = PurePath(os.environ.get("SHELL", "")).name
    if name not in SHELLS:
        raise click.UsageError(f"The variable SHELL does not name a supported shell; choose one: {', '.join(SHELLS)}.")
    return name
