"""`beaver init`: writes a configuration and makes the state folder."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import click

from beaver_hooks.cli.terminal import show
from beaver_hooks.config import parse_config, trust_config
from beaver_hooks.config.locations import FILE, FOLDER
from beaver_hooks.config.paths import shown_variable
from beaver_hooks.plugins.entry_points import install_command, installed
from beaver_hooks.state_folder import make_state_folder
from beaver_hostspecs import ConfigurationError
from beaver_toolkit.files import replace

KINDS = ("offline", "openai")
LOCAL = "local"
"""The name of the plugin that the command asks about. It knows only this name."""

EMBEDDER = "To find memories by meaning as well as by words: beaver memory embedder install e5-small"
UNSET = "not-set-yet"
"""Stands for the credential while the new configuration is checked: the variable need not be set yet."""


@click.command(name="init")
@click.option(
    "--provider", type=click.Choice(KINDS), help="The language model: `offline` for none, or any OpenAI-compatible API."
)
@click.option("--base-url", metavar="URL", help="The address of the API, for example http://127.0.0.1:11434/v1.")
@click.option("--model", metavar="NAME", help="The name of the model.")
@click.option(
    "--api-key-env", metavar="NAME", help="The environment variable that holds the API key, if one is needed."
)
@click.option("--local/--no-local", "local", default=None, help="Whether to use the local memory, if it is installed.")
@click.option("--force", is_flag=True, help="Overwrite a configuration without asking.")
@click.option("--debug", is_flag=True, expose_value=False, help="Show the traceback of an error.")
def command(
    *,
    provider: str | None,
    base_url: str | None,
    model: str | None,
    api_key_env: str | None,
    local: bool | None,
    force: bool,
) -> None:
    """Write a configuration and the state folder.

    Both are in .beaver in this folder. On a terminal it asks for what the options do not say. The API key itself is
    never written, only the name of the environment variable that holds it. An existing configuration is overwritten
    only after a question, or with --force.
    """
    path = Path.cwd() / FOLDER / FILE
    _check_free(path, force=force)
    raw = _configuration(_provider(provider, base_url, model, api_key_env), local=_local(wanted=local))
    parse_config(json.dumps(raw), environment=_variables(raw))
    make_state_folder(path.parent)
    replace(path, f"{json.dumps(raw, indent=2)}\n".encode())
    # The user has just written it, so it needs no question.
    trust_config(path)
    _tell(path, raw)


def _check_free(path: Path, *, force: bool) -> None:
    if force or not path.exists():
        return
    if not sys.stdin.isatty():
        raise ConfigurationError("", f"a configuration exists at {path}; overwrite it with --force")
    click.confirm(f"A configuration exists at {path}. Overwrite it?", abort=True, err=True)


def _provider(kind: str | None, base_url: str | None, model: str | None, variable: str | None) -> dict[str, Any]:
    details = base_url or model or variable
    if kind is None and sys.stdin.isatty() and not details:
        kind = click.prompt("Language model", type=click.Choice(KINDS), default=KINDS[0], err=True)
    if (kind or ("openai" if details else "offline")) == "offline":
        if details:
            raise click.UsageError("Only --provider openai takes --base-url, --model and --api-key-env.")
        return {"kind": "offline"}
    if sys.stdin.isatty():
        base_url = base_url or click.prompt("Address of the API", default="http://127.0.0.1:11434/v1", err=True)
        model = model or click.prompt("Which model", err=True)
        variable = variable or click.prompt(
            "Environment variable that holds the API key (empty if none is needed)", default="", err=True
        )
    if variable and not shown_variable(variable) and variable not in os.environ:
        raise click.UsageError("Give the name of an environment variable in capital letters, never the key itself.")
    found = {"kind": "openai", "baseUrl": base_url, "model": model, "apiKey": {"env": variable} if variable else None}
    return {key: value for key, value in found.items() if value is not None}


def _local(*, wanted: bool | None) -> bool:
    """Return whether to use the local memory; ask the user, if it is installed.

    Raises:
        UsageError: it is wanted, and is not installed.
    """
    there = LOCAL in installed()
    if wanted and not there:
        raise click.UsageError(f"The local memory is not installed; install it with: {install_command(LOCAL)}")
    if wanted is None and there and sys.stdin.isatty():
        return click.confirm(
            "Use the local memory, which keeps memories on this machine and recalls them?", default=True, err=True
        )
    return bool(wanted)


def _configuration(provider: dict[str, Any], *, local: bool) -> dict[str, Any]:
    chosen = {LOCAL: {"enabled": True}} if local else {}
    return {"memory": {"mode": "curated", **chosen}, "provider": provider}


def _variables(raw: dict[str, Any]) -> dict[str, str]:
    key = raw["provider"].get("apiKey")
    return {key["env"]: UNSET} if key else {}


def _tell(path: Path, raw: dict[str, Any]) -> None:
    show(f"Wrote {path}.")
    if names := _variables(raw):
        show(f"Before you start, put the key into the environment variable {next(iter(names))}.")
    if LOCAL in raw["memory"]:
        show(f"The local memory is on. {EMBEDDER}")
        show('Now try: beaver memory add "The office closes at six.", and then beaver chat')
        return
    if LOCAL not in installed() and sys.stdin.isatty():
        show(f"For a memory that recalls automatically: {install_command(LOCAL)}, and beaver init --local")
    show("Now try: beaver chat")
