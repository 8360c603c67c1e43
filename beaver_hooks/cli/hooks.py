"""`beaver hooks`: memory for agents that run commands at events, put into their settings and taken out again."""

import difflib
import json
import os
import shlex
import sys
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from beaver_hooks.cli.codes import FOUND
from beaver_hooks.cli.common import IDENTIFIER
from beaver_hooks.cli.terminal import counted, filled, show
from beaver_hooks.coding_agents.claude_code import status as looking
from beaver_hooks.coding_agents.claude_code.client import CONFIG
from beaver_hooks.coding_agents.claude_code.folder_trust import keep_folder
from beaver_hooks.coding_agents.claude_code.installer import Change, Installation, Scope, commands, settings_file
from beaver_hooks.coding_agents.claude_code.resident_socket import UNSUPPORTED, is_supported
from beaver_hooks.config.locations import find_folder
from beaver_hooks.config.paths import printable
from beaver_hostspecs import ConfigurationError, Trust, scrub

Function = TypeVar("Function", bound=Callable[..., Any])

TWICE = (
    "The hooks are installed twice with different options, so each prompt is processed twice; uninstall one of them."
)
OFF = "`disableAllHooks` is true in a settings file, so Claude Code runs no hook; remove that setting."
ABOUT_TOOLS = (
    "Each plugin decides what it recalls and learns: `curated`, which is on by default, shows its files and changes"
    " them"
    " only through its tool. After a session has started, `beaver hooks status` lists what each plugin does. The tools"
    " need MCP (the extra `beaver-hooks[mcp]`); add them with:"
)
AGENTS = click.Choice(["claude-code"])


def _common(function: Function) -> Function:
    for option in (
        click.argument("agent", type=AGENTS),
        click.option(
            "--scope",
            type=click.Choice(looking.SCOPES),
            default="user",
            help="The settings file to change.",
            show_default=True,
        ),
        click.option("--dry-run", "dry", is_flag=True, help="Show what would change, and write nothing."),
        click.option("--json", "as_json", is_flag=True, help="Print one JSON object."),
        click.option("--debug", is_flag=True, expose_value=False, help="Show the traceback of an error."),
    ):
        function = option(function)
    return function


@click.group(name="hooks")
def command() -> None:
    """Give another agent memory through the hooks in its settings.

    For Claude Code there are three settings files: `user` is in CLAUDE_CONFIG_DIR or ~/.claude, `project` is
    .claude/settings.json of the working directory, `local` is .claude/settings.local.json there.
    """


@command.command()
@_common
@click.option("--config", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path),
              help="One configuration for every project; naming it here confirms it.")  # fmt: skip
@click.option("--trust", type=click.Choice([each.value for each in Trust]), default=Trust.FULL.value,
              help="How far memory trusts the user who types the prompts.", show_default=True)  # fmt: skip
@click.option("--user", metavar="ID", type=IDENTIFIER, help="The id of the user whose memory is used.")
@click.option("--budget", metavar="TOKENS", type=click.IntRange(min=1),
              help="The most tokens that memory may add to a prompt.  [default: 2000]")  # fmt: skip
@click.pass_context
def install(
    ctx: click.Context, /, agent: str, scope: Scope, *, dry: bool, as_json: bool, config: Path | None, trust: str,
    **more: Any,
) -> None:  # fmt: skip
    """Write the hooks into a settings file.

    The other settings in the file stay. Without --config each project uses the configuration and the memory of its own
    folder; a configuration that is found there takes effect only after `beaver trust` has confirmed it.
    """
    if not is_supported():
        raise ConfigurationError("", UNSUPPORTED)
    named = config or (ctx.find_root().params.get("config"))
    options = [] if named is None else [CONFIG + _absolute(Path(named))]
    options += [f"--{name}={more[name]}" for name in ("user", "budget") if more[name] is not None]
    options += [] if trust == Trust.FULL else [f"--trust={trust}"]
    change = _installation(scope).install(commands(options), dry=dry)
    _tell(change, agent, dry=dry, as_json=as_json, words=("installed", "The hooks are installed already"))
    if not dry and not as_json:
        show(f"{filled(ABOUT_TOOLS)}\n  {_mcp(scope, options)}")


@command.command()
@_common
def uninstall(agent: str, scope: Scope, *, dry: bool, as_json: bool) -> None:
    """Remove the hooks from a settings file.

    A file that was not changed after the installation gets its earlier bytes back. Otherwise only the hooks of Beaver
    Hooks are removed.
    """
    change = _installation(scope).uninstall(dry=dry)
    _tell(change, agent, dry=dry, as_json=as_json, words=("uninstalled", "No hooks are installed"))


@command.command()
@click.argument("agent", type=AGENTS, required=False)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--debug", is_flag=True, expose_value=False, help="Show the traceback of an error.")
@click.pass_context
def status(ctx: click.Context, agent: str | None, *, as_json: bool) -> None:
    """Show where the hooks are installed, whether they work, and the state of memory in this folder.

    The exit code is 1 if there is a problem.
    """
    cwd = Path.cwd()
    found = [looking.examine(scope, os.environ, cwd) for scope in looking.SCOPES]
    used = {each.options: each for each in found if each.state in ("installed", "partly")}
    memories = [_memory(options, each.scope, cwd) for options, each in used.items()]
    problem = _problem(found, used)
    if as_json:
        files = [each.to_json() for each in found]
        show(
            scrub(
                json.dumps(
                    {"agent": agent or "claude-code", "files": files, "memory": memories, "problem": problem}, indent=2
                )
            )
        )
    else:
        for each in found:
            show(_shown(each))
        for text in [*([problem] if problem else []), *map(_shown_memory, memories)]:
            show(text)
    if problem or any(each.problems for each in found) or any(memory["problem"] for memory in memories):
        ctx.exit(FOUND)


@command.command()
@click.argument("agent", type=AGENTS)
@click.option("--debug", is_flag=True, expose_value=False, help="Show the traceback of an error.")
def trust(agent: str) -> None:  # noqa: ARG001 - the other commands take it, too
    """Confirm the memory folder .beaver of the working directory.

    A repository of another person may contain a .beaver folder, whose memory would reach the model as yours. So a
    folder that the hooks did not make is used only after you have confirmed here that it is yours.
    """
    folder = find_folder(os.environ, Path.cwd())
    if not folder.is_dir():
        raise ConfigurationError(
            "", f"there is no folder {printable(str(folder))}; run this in the folder of the project"
        )
    keep_folder(folder, os.environ)
    show(f"The memory in {printable(str(folder))} is confirmed.")


def _problem(found: Sequence[looking.HookStatus], used: Collection[tuple[str, ...]]) -> str | None:
    """Return the problem that keeps installed hooks from working, in any of the files."""
    if used and any(each.switched_off for each in found):
        return OFF
    return TWICE if len(used) > 1 else None


def _installation(scope: Scope) -> Installation:
    return Installation(settings_file(scope, os.environ, Path.cwd()), os.environ)


def _absolute(config: Path) -> str:
    """Return the path of a configuration in a form that every project can use."""
    path = config.absolute()
    if not path.is_file():
        raise ConfigurationError("", f"the configuration file {printable(str(path))} does not exist; create it first")
    return str(path)


def _tell(change: Change, agent: str, *, dry: bool, as_json: bool, words: tuple[str, str]) -> None:
    done, nothing = words
    path = printable(str(change.path))
    if as_json:
        show(json.dumps({"agent": agent, "path": path, "changed": change.changes, "dryRun": dry}, indent=2))
    elif not change.changes:
        show(f"{nothing} in {path}.")
    elif dry:
        show(scrub(_difference(change)), end="")
    else:
        show(f"The hooks are {done}: {path}. Claude Code reads it when its next session starts.")


def _difference(change: Change) -> str:
    before, after = (_lines(each) for each in (change.before, change.after))
    return "".join(difflib.unified_diff(before, after, f"{change.path} (now)", f"{change.path} (then)"))


def _lines(content: bytes | None) -> list[str]:
    lines = [] if content is None else content.decode("utf-8", "replace").splitlines(keepends=True)
    return [each if each.endswith("\n") else f"{each}\n" for each in lines]


def _mcp(scope: Scope, options: Sequence[str]) -> str:
    """Return the line for a shell that adds the tools of the same memory to Claude Code."""
    kept = [each for each in options if not each.startswith("--budget=")]
    # `-P`: a module in the user's project must not shadow a module of Beaver Hooks.
    server = [sys.executable, "-P", "-m", "beaver_hooks.cli", "mcp", *kept]
    return shlex.join(["claude", "mcp", "add", "--scope", scope, "beaver", "--", *server])


def _memory(options: tuple[str, ...], scope: Scope, cwd: Path) -> dict[str, Any]:
    """Return the state of memory for hooks installed with these options."""
    problem = looking.place_fault(options, os.environ) or looking.configuration_fault(options, os.environ, cwd)
    try:
        said = looking.resident(options, os.environ)
    except TimeoutError:
        said, problem = None, looking.silence(options, os.environ)
    # A running resident has tried to open memory: its reason comes first.
    if said is not None and said.get("memory") == "off" and said.get("failed"):
        problem = str(said["why"])
    log = str(looking.log_file(options, os.environ))
    others = looking.others(options, os.environ)
    return {"problem": problem, "resident": said, "log": log, "mcp": _mcp(scope, options), "others": others}


def _shown(found: looking.HookStatus) -> str:
    said = [("problem", each) for each in found.problems] + [("note", each) for each in found.notes]
    lines = [filled(f"  {kind}: {each}.", indent="    ") for kind, each in said]
    lines += [f"  options: {printable(shlex.join(found.options))}"] if found.options else []
    return "\n".join([f"{found.scope:8} {found.state:10} {printable(str(found.path))}", *lines])


def _shown_memory(memory: dict[str, Any]) -> str:
    doing = [_shown_plugin(*each) for each in (memory["resident"] or {}).get("plugins", {}).items()]
    tools = f"The plugins' tools need MCP; add them with:\n  {printable(memory['mcp'])}"
    others = ", ".join(memory["others"])
    said = [
        filled(
            f"Other programs run these hooks as well, but get no memory through them: {printable(others)}.", indent="  "
        )
    ]
    return "\n".join([tools, _shown_state(memory), *doing, *(said if others else [])])


def _shown_plugin(name: str, does: dict[str, Any]) -> str:
    said = ["recalls before a prompt" if does["recalls"] else "does not recall"]
    said += ["learns after an answer" if does["learns"] else "does not learn"]
    if tools := does["tools"]:
        said += [f"has the tool{'s' * (len(tools) > 1)} {', '.join(tools)}"]
    return filled(f"  {name} {'; '.join(said)}", indent="    ")


def _shown_state(memory: dict[str, Any]) -> str:
    if memory["problem"]:
        return filled(f"Memory is off in this folder: {memory['problem']}.", indent="  ")
    said = memory["resident"]
    if said is None:
        last = Path(memory["log"])
        written = f" The log of the last one is {printable(str(last))}." if last.is_file() else ""
        return f"No resident process runs for this folder; the next session starts one.{written}"
    open_turns, log = counted(said["open_turns"], "open turn"), printable(memory["log"])
    return f"The resident process {said['pid']} has {open_turns}; memory is {said['memory']}. Its log is {log}."
