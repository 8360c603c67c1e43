"""Runs the command line. What goes wrong becomes one sentence with a remedy on stderr, and an exit code."""

import sys
from collections.abc import Sequence

import click

from beaver_hooks.cli.app import beaver

FOUND, USAGE, CONFIGURATION, PROVIDER, STORAGE, PLUGIN, INTERRUPTED = 1, 2, 3, 4, 5, 6, 130
DEBUG = "--debug"
UNEXPECTED = "something unexpected happened ({})."


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its exit code.

    Args:
        arguments: the command line, this process's unless given.

    Raises:
        SystemExit: whoever read stdout has enough; click leaves, with code 1.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        # Commands return nothing (see `Root.invoke`): a number is what one of them exited with.
        return int(beaver.main(given, prog_name="beaver", standalone_mode=False) or 0)
    except (KeyboardInterrupt, click.Abort):
        click.echo("Interrupted.", err=True)
        return INTERRUPTED
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except Exception as error:  # noqa: BLE001 - it is said, and --debug shows all of it
        return _say(error, debug=DEBUG in given)


def _say(error: Exception, *, debug: bool) -> int:
    """Say what went wrong; return the exit code."""
    from beaver_hostspecs import BeaverError, scrub  # noqa: PLC0415 - only who fails pays for it

    if debug:
        import traceback  # noqa: PLC0415 - the same

        click.echo(scrub("".join(traceback.format_exception(error))), err=True)
    if isinstance(error, BeaverError):
        click.echo(f"Error: {sentence(error)}", err=True)
        return _code(error)
    click.echo(f"Error: {UNEXPECTED.format(type(error).__name__)} Repeat it with {DEBUG} to see where.", err=True)
    return FOUND


def sentence(error: Exception) -> str:
    """Return what an error says as a sentence that any terminal may be sent."""
    from beaver_hooks.cli.terminal import harmless  # noqa: PLC0415 - see above

    text = harmless(str(error))
    return text if text.endswith((".", "!", "?", ")")) else f"{text}."


def _code(error: Exception) -> int:
    from beaver_hooks.agent.errors import ProviderError, SessionError, StorageError  # noqa: PLC0415 - see above
    from beaver_hostspecs import AuditError, ConfigurationError, InvalidTurn, NotOffered, PluginError  # noqa: PLC0415

    kinds: dict[int, tuple[type[Exception], ...]] = {
        USAGE: (InvalidTurn, NotOffered),
        CONFIGURATION: (ConfigurationError,),
        PROVIDER: (ProviderError,),
        STORAGE: (StorageError, SessionError, AuditError),
        PLUGIN: (PluginError,),
    }
    return next((code for code, found in kinds.items() if isinstance(error, found)), FOUND)
