"""The file of an export: a zip archive with a folder for each holder, and the report of all of them."""

import json
import os
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from beaver_hooks.agent.errors import StorageError
from beaver_hooks.config.paths import printable
from beaver_toolkit.files import flush, publish

REPORT = "report.json"
_BLOCK = 2**20


@contextmanager
def work_folder(path: Path) -> Iterator[Path]:
    """Yield a new private folder beside a new file, and remove the folder afterwards.

    Raises:
        StorageError: it cannot be made.
    """
    try:
        folder = Path(tempfile.mkdtemp(prefix=".beaver-export-", suffix=".tmp", dir=path.parent))
    except OSError as error:
        raise _unwritable(path, error) from error
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def write_export(path: Path, folder: Path, report: dict[str, Any]) -> bool:
    """Write the report, and the files below a folder that are not empty, into a new archive (0600).

    Returns whether its name was free.

    Raises:
        StorageError: it cannot be written.
    """
    archive = folder.with_name(f"{folder.name}.zip")
    try:
        descriptor = os.open(archive, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as to:
                to.writestr(REPORT, json.dumps(report, indent=2, ensure_ascii=False))
                for each in sorted(each for each in folder.rglob("*") if each.is_file() and each.stat().st_size):
                    with each.open("rb") as source, to.open(each.relative_to(folder).as_posix(), "w") as target:
                        shutil.copyfileobj(source, target, _BLOCK)
            file.flush()
            flush(descriptor)
        return publish(archive, path)
    except OSError as error:
        raise _unwritable(path, error) from error
    finally:
        archive.unlink(missing_ok=True)


def _unwritable(path: Path, error: OSError) -> StorageError:
    return StorageError(f"The file {printable(str(path))} cannot be written ({error.strerror}); name another one.")
