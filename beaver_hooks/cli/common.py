"""Common parts of the commands: options, the configuration in effect, the log, the agent and its notices."""

import asyncio
import hashlib
import logging
import os
import re
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

import beaver_hooks
from beaver_hooks.cli.app import CONFIG
from beaver_hooks.cli.log_file import LogFile
from beaver_hooks.cli.terminal import harmless, show, waiting
from beaver_hooks.config import Config, LoadedConfig, Summary, load_config
from beaver_hostspecs import Trust, scrub
from beaver_toolkit.files import create_once

if TYPE_CHECKING:
    from beaver_hooks.agent.factory import EngineLoadResult
    from beaver_hooks.receipts.health import Health


Function = TypeVar("Function", bound=Callable[..., Any])
T = TypeVar("T")

LEVELS = ("debug", "info", "warning", "error", "critical")

FOLDER = "notices"
"""The folder in the state folder with one empty file for each shown notice."""

ONCE = "This line is shown once; `beaver check` repeats it."

_OPTED_OUT = re.compile(r"event=beaver_hooks\.plugin_unavailable plugin=\S+ error=PluginUnavailable ")


def common(function: Function) -> Function:
    """Give a command the common options: `--config` and `--debug`."""
    path = click.Path(dir_okay=False, path_type=Path)
    config = click.option(
        "--config", metavar="FILE", type=path, help="The configuration file; naming it here confirms it."
    )
    debug = click.option("--debug", is_flag=True, expose_value=False, help="Show the traceback of an error.")
    return config(debug(function))


def configured(config: Path | None) -> LoadedConfig:
    """Return the configuration in effect; ask the user about one that was merely found."""
    set_up_log()
    named = config or click.get_current_context().meta.get(CONFIG)
    return load_config(
        None if named is None else Path(named),
        confirm=_confirm if sys.stdin.isatty() and sys.stderr.isatty() else None,
        classes=_settings_classes,
    )


def _settings_classes(config: Config) -> dict[str, type]:
    # Imported late: only an unconfirmed configuration needs the classes.
    from beaver_hooks.plugins.settings_classes import settings_classes  # noqa: PLC0415

    return settings_classes(config)


@asynccontextmanager
async def opened(loaded: LoadedConfig, *, notices: bool = True) -> "AsyncIterator[EngineLoadResult]":
    """Yield an open agent, and close it.

    Args:
        loaded: the configuration.
        notices: whether to show which plugins are left out, and the notices of others; not for a command whose output
            contains them.
    """
    from beaver_hooks.agent.factory import EngineLoader  # noqa: PLC0415 - `beaver mcp` answers before the agent is open

    with waiting("Loading the plugins"):
        engine = await EngineLoader(loaded).load()
    if notices:
        tell_once(engine.status, engine.notices, loaded.state_folder)
    try:
        yield engine
    finally:
        with waiting("Waiting for the plugins to store this turn"):
            await engine.close()


def in_loop(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end. Ctrl-C cancels it."""
    return asyncio.run(work)


def set_up_log() -> None:
    """Log to stderr, at the level of BEAVER_LOG_LEVEL."""
    level = os.environ.get("BEAVER_LOG_LEVEL", "warning").strip().lower()
    if level not in LEVELS:
        raise click.UsageError(f"BEAVER_LOG_LEVEL must be one of {', '.join(LEVELS)}.")
    handler = logging.StreamHandler()
    if not asks_for_log():
        handler.addFilter(is_news)
    handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
    logger = logging.getLogger(beaver_hooks.__name__)
    logger.handlers = [handler]
    logger.propagate = False
    logger.setLevel(level.upper())


def asks_for_log() -> bool:
    """Whether the user has set the log level: then the log goes to stderr."""
    return bool(os.environ.get("BEAVER_LOG_LEVEL"))


@contextmanager
def logging_to_file(folder: Path) -> Iterator[None]:
    """Log to a file in a state folder meanwhile, unless the user asks for the log on stderr."""
    if asks_for_log():
        yield
        return
    logger, file = logging.getLogger(beaver_hooks.__name__), LogFile(folder)
    before, logger.handlers = logger.handlers, [file]
    try:
        yield
    finally:
        logger.handlers = before
        file.close()


def _confirm(summary: Summary) -> bool:
    """Show the user the summary of a configuration, and ask for a confirmation."""
    what = "was changed after it was confirmed" if summary.changed else "was found here"
    click.echo(f"This configuration {what}:\n{harmless(scrub(str(summary)))}", err=True)
    return click.confirm("Use it from now on?", err=True)


def is_news(record: logging.LogRecord) -> bool:
    """Whether a log record says more than `tell_once`, which reports plugins that opt out."""
    return not _OPTED_OUT.match(record.getMessage())


def tell_once(status: "Mapping[str, Health]", notices: Mapping[str, Sequence[str]], folder: Path) -> None:
    """Show on stderr the plugins that are left out and the notices of the others, each once per state folder."""
    for name, health in status.items():
        if health.state == "unavailable" and _is_first(folder, name, health.reason):
            show(f"{name} is left out: {health.reason}. {ONCE}", err=True)
    for name, texts in notices.items():
        for text in texts:
            if _is_first(folder, name, text):
                show(scrub(f"{name}: {text}. {ONCE}"), err=True)


def _is_first(state_folder: Path, name: str, reason: str | None) -> bool:
    folder = state_folder / FOLDER
    path = folder / f"{name}-{hashlib.sha256(str(reason).encode()).hexdigest()[:16]}"
    if os.path.lexists(path):
        return False
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        create_once(path, b"")
    except OSError:
        return True  # shown again, rather than never
    return True


class Identifier(click.ParamType[str]):
    """The id of a user or a session. A blank one is refused: it would count as missing."""

    name = "id"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the id unchanged."""
        if not str(value).strip():
            self.fail("An id must not be blank; leave the option out if there is none.", param, ctx)
        return str(value)


IDENTIFIER = Identifier()


trust_option = click.option(
    "--trust",
    type=click.Choice([each.value for each in Trust]),
    help="How far memory trusts the user, if less than `agent.trust`.",
)
no_memory_option = click.option(
    "--no-memory", is_flag=True, help="Switch memory off for the session, until it is switched on again."
)
