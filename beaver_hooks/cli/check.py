"""`beaver check`: checks the configuration and the environment of an agent."""

import os
from pathlib import Path

import attrs
import click

from beaver_hooks.agent.errors import SkillError
from beaver_hooks.agent.factory import EngineLoadResult, library_of, skill_folders
from beaver_hooks.cli.checks import health, settings, versions
from beaver_hooks.cli.checks.findings import Finding, exit_code, from_error, ok, problem, report, warning
from beaver_hooks.cli.codes import CONFIGURATION
from beaver_hooks.cli.common import common, in_loop, opened, set_up_log
from beaver_hooks.cli.terminal import counted
from beaver_hooks.config import LoadedConfig
from beaver_hooks.config.paths import printable
from beaver_hooks.file_trust import StateFiles
from beaver_hostspecs import BeaverError, ConfigurationError


@click.command(name="check")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object: ok, and the findings.")
@common
@click.pass_context
def command(ctx: click.Context, *, as_json: bool, config: Path | None) -> None:
    """Check the configuration and the environment.

    Starts the agent with its plugins, as `beaver run` would, and closes it again, without a request to the model. Each
    finding is ok, a warning or a problem, and names the remedy. The exit code is 0, or 1 if there is a problem, or 3 if
    the configuration is wrong, lacks a credential that it names, or is not confirmed. The command does not ask for a
    confirmation.
    """
    set_up_log()
    looked = settings.look(config)
    findings = [*versions.engines(), *looked.findings]
    code = CONFIGURATION
    if looked.loaded is not None:
        loaded = looked.loaded
        provider = [*settings.provider(loaded), *settings.small_model(loaded)]
        findings += [*provider, *_skills(loaded), state_folder(loaded.state_folder), *_person_folder(loaded)]
        opening, code = in_loop(_open(loaded, frozenset(looked.sections)))
        findings += opening
        # A missing credential is a fault of the configuration.
        code = CONFIGURATION if exit_code(provider) else code
    report(findings, as_json=as_json)
    ctx.exit(code or exit_code(findings))


def state_folder(folder: Path) -> Finding:
    """Return whether a state folder can be written, or made if it is missing."""
    there = next(each for each in (folder, *folder.parents) if os.path.lexists(each))
    if os.access(there, os.W_OK | os.X_OK):
        return ok("state folder", printable(str(folder)))
    text = f"{printable(str(there))} cannot be written"
    return problem("state folder", text, "make it writable, or set `host.stateFolder` to another folder")


def _person_folder(loaded: LoadedConfig) -> list[Finding]:
    """Return whether the person's folder can be written, if it is outside of the state folder."""
    if loaded.person_folder == loaded.state_folder:
        return []
    found = state_folder(loaded.person_folder)
    return [attrs.evolve(found, subject="your own folder, shared by your projects")]


async def _open(loaded: LoadedConfig, wanted: frozenset[str]) -> tuple[list[Finding], int]:
    """Return the state of every plugin after the start, and the exit code, as far as it is known by then."""
    try:
        async with opened(loaded, notices=False) as engine:
            return _plugins(engine, wanted), 0
    except ConfigurationError as error:
        return [from_error("configuration", error, "correct it there")], CONFIGURATION
    except BeaverError as error:
        return [from_error("agent", error, "see `beaver doctor`")], 0


def _plugins(engine: EngineLoadResult, wanted: frozenset[str]) -> list[Finding]:
    examined = [
        health.examine(name, each, wanted=name in wanted, degraded="warning") for name, each in engine.status.items()
    ]
    # A notice for the person is no fault, and has its own remedy.
    return [*examined, *(ok(f"plugin {name}", text) for name, texts in engine.notices.items() for text in texts)]


def _skills(loaded: LoadedConfig) -> list[Finding]:
    """Return whether the skills can be read, and the skills of every run exist."""
    subject, folders = "skills", skill_folders(loaded)
    library = library_of(loaded, StateFiles(loaded.state_folder, os.environ))
    listed = library.list()
    findings = [warning(subject, *_parted(each)) for each in listed.problems]
    try:
        library.activate(loaded.config.agent.skills)
    except SkillError as error:
        findings.append(from_error(subject, error, "correct `agent.skills`"))
    where = counted(len(folders), "folder")
    return findings or [ok(subject, f"{counted(len(listed.skills), 'skill')} in {where}")]


def _parted(sentence: str) -> tuple[str, str]:
    text, found, remedy = sentence.rpartition("; ")
    return (text, remedy) if found else (sentence, "correct the skill, or remove it from its folder")
