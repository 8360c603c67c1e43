r"""Every error of the memory engine.

    PluginError
    └── EngineError               the root of this tree; never raised itself
        ├── InvalidRequest        a request that no memory can carry out; `field` names the wrong field
        ├── OperationUnavailable  the profile withholds an operation, or it needs a service that is missing
        ├── RuntimeNotOpen        an operation is called before the memory is open, or after it was closed
        ├── RuntimeOverloaded     too many operations wait
        ├── StoreError            the store of memories cannot do what it was asked; `category` says why
        │   └── PersonalStoreError  the database of the person cannot be written
        └── VecError              the extension sqlite-vec cannot be used (in `store.extension`); the index serves then

A store turns the errors of SQLite and of the file system into `StoreError`, with the remedy. Acknowledged writes stay,
and no file is ever replaced by a new one.
"""

from pathlib import Path
from types import MappingProxyType

from beaver_hostspecs import PluginError

REMEDIES = MappingProxyType(
    {
        "locked": "is locked by another process; end that process or try again",
        "disk_full": "cannot grow: the disk is full; make room and try again",
        "not_erased": "forgot them, but the disk is full: make room; their texts go when the last process closes it",
        "read_only": "is read-only; check who owns it and its folder",
        "cannot_open": "cannot be opened; check who owns it and its folder",
        "no_folder": "has no folder; create the folder, or set another path",
        "corrupt": "is damaged; move it (with its -wal and -shm files) away, or restore it from a backup",
        "emptied": "is an empty file; restore it from a backup, or move it (with its -wal and -shm files) away",
        "left_log": "is missing while its -wal file is there; restore it, or move the -wal file away",
        "io_error": "cannot be read or written; check the disk",
        "not_ours": "is not a store of memories; move it away, or set another path",
        "broken": "lacks tables of a store of memories; restore it from a backup",
        "not_migrated": "could not be migrated to this version; it is unchanged, with a copy beside it; report this",
        "newer": "was written by a newer version of Beaver Hooks; update this one",
        "link": "is a symbolic link; set the path to the file itself, or put the file in the place of the link",
        "exchanged": "was replaced by a copy of itself while it was in use; try again to use the copy",
        "log_removed": "lost its -wal or -shm file while it was in use; nothing stored is lost; try again",
        "log_lost": "lost its -wal file while it was in use; the newest memories may be lost; try again",
        "in_use": "is used by a process that has lost its -wal or -shm file; end that process, or try again",
        "overwritten": "was overwritten while it was in use; nothing of this was stored; run `beaver memory check`",
        "missing": "disappeared while it was in use; restore it, or restart to begin with an empty one",
        "replaced": "was replaced by another store while it was in use; restart the process",
        "exists": "is there already; move it (with its -wal and -shm files) away, or restore with --merge",
        "closed": "is closed; open it again",
        "no_driver": "needs psycopg; install beaver-memory[postgres]",
        "wrong_address": "has an address that cannot be read; write postgresql://user:password@host:port/database, and"
        " `@`, `/` and `?` in the password as %40, %2F and %3F",
        "refused": "cannot be reached; check that the server runs, its address, and the network",
        "password": "refuses the user or the password; check both, and the server's pg_hba.conf",
        "tls": "cannot be reached with TLS; check sslmode and the certificates",
        "no_database": "does not exist; create the database, or set another one",
        "no_vectors": "lacks pgvector; install it, and have an administrator run CREATE EXTENSION vector",
        "no_rights": "may not be used so by this user; grant it the schema and its tables",
        "busy": "has no connection left; try again, or allow more connections",
        "starting": "is starting or stopping; try again",
        "standby": "accepts no writes; set the address of the primary server",
        "server_full": "has no disk or memory left; make room on the server and try again",
        "too_slow": "took too long; try again",
        "cut_off": "ended the connection; nothing of this was stored; try again",
        "unsure": "ended the connection before it answered a write; look whether it was stored before you repeat it",
        "server_failed": "reports an internal error; see the server's log",
        "damaged": "holds damaged rows; run `beaver memory check`, or restore it from a backup",
        "replaced_database": "was replaced by another store while it was in use; restart the process",
        "forked": "was opened by another process; open it again in this process",
    }
)


class EngineError(PluginError):
    """The root of this tree; never raised itself."""


class InvalidRequest(EngineError):
    """A request that no memory can carry out.

    Attributes:
        field: the path of the wrong field, for example `visible.owners`.
    """

    def __init__(self, field: str, problem: str) -> None:
        self.field = field
        super().__init__(f"`{field}` {problem}.")


class OperationUnavailable(EngineError):
    """The profile of a memory withholds an operation, or the operation needs a service that is missing."""


class RuntimeNotOpen(EngineError):
    """An operation is called before the memory is open, or after it was closed."""


class RuntimeOverloaded(EngineError):
    """Too many operations wait, so this one did not begin."""


class DamagedRow(Exception):
    """A row of a database does not hold what it should; the store raises `StoreError` in its place."""


class StoreError(EngineError):
    """The store of memories cannot do its work.

    Args:
        place: its file, or host, port and name of its database.
        category: the reason.

    Attributes:
        category: the reason, in one word that may be shown anywhere.
        place: the file or the database.
    """

    def __init__(self, place: Path | str, category: str) -> None:
        self.category, self.place = category, place
        remedy = REMEDIES.get(category, "cannot be used; run `beaver memory check`")
        super().__init__(f"The memory store {place} {remedy}.")


class PersonalStoreError(StoreError):
    """The database of the person cannot be written; its memories are stored nowhere else."""

    def __init__(self, path: Path, category: str) -> None:
        super().__init__(path, category)
        self.args = (f"{self} Memories of scope `global` are kept there, so nothing was stored.",)
