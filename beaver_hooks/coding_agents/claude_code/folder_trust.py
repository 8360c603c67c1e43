"""Trust in a state folder: Claude Code opens folders without a question, and their content may be a stranger's.

A repository can contain a `.beaver` folder, and its memories would reach the model as the user's own. So a folder that
was merely found is used only if it was made for this user, or confirmed: by `beaver hooks trust`, or by `beaver trust`
for the configuration in it.
"""

from collections.abc import Mapping
from pathlib import Path

from beaver_hooks.audit.key import KEY_FILE, make_key, read_key
from beaver_hooks.config import LoadedConfig
from beaver_hooks.config.locations import FOLDER, VARIABLE, home_folder
from beaver_hooks.config.paths import printable
from beaver_hooks.config.trust import record_made, was_made_here
from beaver_hooks.state_folder import make_state_folder
from beaver_hostspecs import ConfigurationNotTrusted

EMPTY = {".gitignore", KEY_FILE}
"""The files of a state folder without content."""


def merely_found(loaded: LoadedConfig, environment: Mapping[str, str], *, named: bool) -> bool:
    """Whether the state folder is that of the current project, and no confirmed configuration names it.

    Args:
        loaded: the configuration.
        environment: the variables, which may contain its path; a relative path leads into every project.
        named: whether the hooks were installed with this configuration.
    """
    named = named or Path(environment.get(VARIABLE, "")).is_absolute()
    return not named and loaded.trusted_by != "confirmed" and loaded.config.host.state_folder is None


def check_folder(folder: Path, environment: Mapping[str, str]) -> None:
    """Raise unless a state folder that was merely found may be used.

    Raises:
        ConfigurationNotTrusted: the user has not confirmed it.
        ConfigurationError: the record of confirmations cannot be read.
        AuditUnavailable: the folder, or the key in it, cannot be read.
    """
    if folder == home_folder(environment) / FOLDER:
        return  # no repository can contain it
    if not _is_new(folder) and not _is_ours(folder, environment):
        raise ConfigurationNotTrusted(
            "",
            f"the folder {printable(str(folder))} was not made by the hooks and is not confirmed; if the memory in"
            " it is yours, run `beaver hooks trust claude-code`",
        )


def keep_folder(folder: Path, environment: Mapping[str, str]) -> None:
    """Make a state folder unless it exists, and record that this user owns it.

    Raises:
        ConfigurationError: the record cannot be written.
        AuditUnavailable: the folder, or the key in it, cannot be made or read.
    """
    key = make_key(make_state_folder(folder))
    path = folder / KEY_FILE
    if not was_made_here(path, key.secret, environment):
        record_made(path, key.secret, environment)


def _is_new(folder: Path) -> bool:
    try:
        return EMPTY.issuperset(each.name for each in folder.iterdir())
    except FileNotFoundError:
        return not folder.is_symlink()
    except OSError:
        return False  # reading the key says why


def _is_ours(folder: Path, environment: Mapping[str, str]) -> bool:
    key = read_key(folder)
    return key is not None and was_made_here(folder / KEY_FILE, key.secret, environment)
