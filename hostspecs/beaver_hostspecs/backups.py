"""The records by which a plugin copies its state into a backup, and brings it back."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import attrs
from attrs import field
from attrs.validators import instance_of

from beaver_hostspecs.freezing import freeze, texts

PROJECT_PART, PERSON_PART = "project", "person"
"""The parts of a backup: folders for the files of the project, and for those that the user's projects share."""

BACKUP_PARTS = (PROJECT_PART, PERSON_PART)


@attrs.frozen(kw_only=True)
class BackupReport:
    """The content of a plugin's copy.

    Attributes:
        held: how many things it holds, by their plural noun, for example `{"memories": 12}`.
        problems: damage that the check found, one sentence each. The copy is kept nevertheless.
    """

    held: Mapping[str, int] = field(factory=dict, converter=freeze)
    problems: tuple[str, ...] = field(default=(), converter=texts)


@attrs.frozen(kw_only=True)
class RestoreReport:
    """The result of a restore, or of its dry run.

    Attributes:
        added: how many things were added, by their plural noun.
        present: how many were there already.
        conflicts: one sentence for each thing that differs from the present one, which stays; names it.
        notes: further sentences for the user.
    """

    added: Mapping[str, int] = field(factory=dict, converter=freeze)
    present: Mapping[str, int] = field(factory=dict, converter=freeze)
    conflicts: tuple[str, ...] = field(default=(), converter=texts)
    notes: tuple[str, ...] = field(default=(), converter=texts)


@attrs.frozen(kw_only=True)
class RestoreRequest:
    """A restore.

    Attributes:
        folder: the copy, as `StateBackup.write` made it; of its parts only those to restore. It may be changed.
        merge: whether to add missing things to existing state. Otherwise existing state is refused.
        dry_run: whether to change nothing, and report the result that it would have.
    """

    folder: Path = field(validator=instance_of(Path))
    merge: bool = False
    dry_run: bool = False


@attrs.frozen(kw_only=True)
class StateBackup:
    """Copies the state of a configured plugin, which need not be started, and brings it back.

    Each function may wait for a disk and is called from a thread. Any of them may run while other processes use the
    state. A `PluginError` is shown to the user as it is, so it names the remedy.

    Attributes:
        write: writes a copy into an empty folder: files of the project into its folder `project`, files of the person
            into `person`, which it makes. Each database is copied as it was at one moment. It returns sentences for the
            user, for example about data that is not in the copy.
        check: reads a copy whole, by every rule that the plugin has for its data; raises if it cannot be used. It may
            change the copy, which is discarded or restored afterwards.
        restore: brings a copy back. Without `merge` it refuses existing state and changes nothing then. With it, data
            that is there stays as it is.
    """

    write: Callable[[Path], Iterable[str]] = field(repr=False)
    check: Callable[[Path], BackupReport] = field(repr=False)
    restore: Callable[[RestoreRequest], RestoreReport] = field(repr=False)
