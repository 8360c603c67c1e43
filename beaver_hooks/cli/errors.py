"""Runs the command line. An error becomes one sentence with a remedy on stderr, and an exit code."""

import contextlib
import sys
from collections.abc import Sequence

import click

from beaver_hooks.cli.app import beaver
from beaver_hooks.cli.codes import CONFIGURATION, FOUND, INTERRUPTED, PLUGIN, PROVIDER, STORAGE, USAGE
from beaver_hooks.cli.signals import Signals
from beaver_hooks.cli.streams import Unwritable, fault, mend, settle, tell

AFTERWORD = "afterword"
"""The attribute of an error with further text for stderr after its sentence."""

DEBUG = "--debug"
UNEXPECTED = "an unexpected error happened ({})."


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its exit code.

    Args:
        arguments: the command line, by default this process's.

    Raises:
        SystemExit: the reader of stdout has closed it; click exits with code 1.
    """
    mend()
    with Signals() as signals:
        code = _run(list(sys.argv[1:] if arguments is None else arguments))
        if (problem := fault()) is not None and code == 0:
            code = _leave(Unwritable(problem))
        settle()
    return code if signals.code is None else signals.code


def _run(given: list[str]) -> int:
    try:
        # Commands return nothing (see `Root.invoke`): a number is an exit code.
        return int(beaver.main(given, prog_name="beaver", standalone_mode=False) or 0)
    except (KeyboardInterrupt, click.Abort) as error:
        # If the user declined a question, click raises `Abort` without a context; after an interrupt it has one.
        declined = isinstance(error, click.Abort) and error.__context__ is None
        tell("Nothing was changed." if declined else "Interrupted.")
        return FOUND if declined else INTERRUPTED
    except click.ClickException as error:
        return _leave(error)
    except Exception as error:  # noqa: BLE001 - the user sees its sentence, and with --debug its traceback
        problem = fault(error)
        return _say(error, debug=DEBUG in given) if problem is None else _leave(Unwritable(problem))


def _leave(error: click.ClickException) -> int:
    with contextlib.suppress(OSError):
        error.show()
    return error.exit_code


def _say(error: Exception, *, debug: bool) -> int:
    """Show the error; return the exit code."""
    from beaver_hostspecs import BeaverError, scrub  # noqa: PLC0415 - needed only after a failure

    if debug:
        import traceback  # noqa: PLC0415 - the same

        tell(scrub("".join(traceback.format_exception(error))))
    if isinstance(error, BeaverError):
        tell(f"Error: {sentence(error)}")
        if afterword := getattr(error, AFTERWORD, None):
            _add(afterword)
    else:
        tell(
            f"Error: {UNEXPECTED.format(type(error).__name__)} Run the command again with {DEBUG} to see the traceback."
        )
    return exit_code(error)


def _add(afterword: str) -> None:
    from beaver_hooks.cli.terminal import show  # noqa: PLC0415 - see above

    show(afterword, err=True)


def sentence(error: Exception) -> str:
    """Return the text of an error as a sentence that is safe for a terminal."""
    from beaver_hooks.cli.terminal import harmless  # noqa: PLC0415 - see above

    text = harmless(str(error))
    return text if text.endswith((".", "!", "?", ")")) else f"{text}."


def exit_code(error: Exception) -> int:
    """Return the exit code of an error: that of the first matching kind."""
    from beaver_hooks.agent.errors import ProviderError, SessionError, SkillError, StorageError  # noqa: PLC0415
    from beaver_hooks.backups.errors import BackupError  # noqa: PLC0415 - see above
    from beaver_hostspecs import (  # noqa: PLC0415 - needed only after a failure
        AuditError,
        ConfigurationError,
        InvalidTurn,
        NotAllowed,
        NotOffered,
        PluginError,
        UnknownPlugin,
        UnknownTurn,
    )

    kinds: dict[int, tuple[type[Exception], ...]] = {
        USAGE: (InvalidTurn, NotAllowed, NotOffered, SessionError, SkillError, UnknownPlugin, UnknownTurn),
        CONFIGURATION: (ConfigurationError,),
        PROVIDER: (ProviderError,),
        STORAGE: (StorageError, AuditError, BackupError),
        PLUGIN: (PluginError,),
    }
    return next((code for code, found in kinds.items() if isinstance(error, found)), FOUND)
