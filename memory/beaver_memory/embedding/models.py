"""The embedding models that can be installed, and those that are.

A model is a folder `models/<name>` below a state folder, mostly that of the person, with two files and a
`manifest.json` that describes them. It is there whole or not at all. This module does not touch the network.
"""

import hashlib
import json
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import attrs

from beaver_memory.embedding.catalog import KNOWN, KnownModel, Piece
from beaver_memory.embedding.errors import EmbedderMissing, failure

PROVIDER = "onnx"
FOLDER = "models"
MANIFEST = "manifest.json"
INSTALL = "beaver memory embedder install"

Progress = Callable[[int, int | None, str], object]
"""Receives the number of bytes that are done, of all if known, and the name of the step."""

_CHUNK = 1024 * 1024
_LARGEST_MANIFEST = 64 * 1024


def no_progress(done: int, total: int | None, what: str) -> None:
    """Ignore the progress."""


@attrs.frozen(kw_only=True)
class Installed:
    """A model on this machine.

    Attributes:
        known: the catalog entry.
        folder: its folder.
    """

    known: KnownModel
    folder: Path

    @property
    def model(self) -> Path:
        """The file with the network."""
        return self.folder / self.known.model.name

    @property
    def tokenizer(self) -> Path:
        """The file with the tokenizer."""
        return self.folder / self.known.tokenizer.name


@attrs.frozen(kw_only=True)
class ListedModel:
    """A line of the list of models.

    Attributes:
        known: the model.
        installed: whether its folder exists.
        problem: the defect of the folder; empty if it is whole.
    """

    known: KnownModel
    installed: bool
    problem: str = ""


def known_model(name: str, models: Mapping[str, KnownModel] = KNOWN) -> KnownModel:
    """Return the model of a name.

    Raises:
        EmbedderRefused: no model has this name; the message lists all names.
    """
    if name in models:
        return models[name]
    raise failure(
        PROVIDER,
        "refused",
        "There is no embedding model with this name",
        f"Choose one of: {', '.join(sorted(models))}.",
    )


def list_models(state_folder: Path, *, models: Mapping[str, KnownModel] = KNOWN) -> list[ListedModel]:
    """Return every model that can be installed, and whether the folder has it."""
    return [_listed(state_folder, name, models) for name in sorted(models)]


def is_there(name: str, state_folder: Path) -> bool:
    """Return whether the folder of a model exists, whole or not."""
    return (state_folder / FOLDER / name).is_dir()


def check_model(
    name: str,
    state_folder: Path,
    *,
    thorough: bool = False,
    progress: Progress = no_progress,
    models: Mapping[str, KnownModel] = KNOWN,
) -> Installed:
    """Return an installed model.

    Args:
        name: the model.
        state_folder: the folder of the plugin's state.
        thorough: whether to read the files and compare their hashes; else only sizes and the manifest are compared.
        progress: receives the progress of reading.
        models: the models that can be installed.

    Raises:
        EmbedderMissing: the model is missing or incomplete.
        EmbedderRefused: no model has this name.
    """
    known = known_model(name, models)
    folder = state_folder / FOLDER / name
    if not folder.is_dir():
        raise failure(
            PROVIDER, "missing_model", f"The embedding model {name} is not installed", f"Run: {INSTALL} {name}"
        )
    if problem := _problem(known, folder, progress if thorough else None):
        raise failure(
            PROVIDER,
            "missing_model",
            f"The files of the embedding model {name} are damaged: {problem}",
            f"Run: {INSTALL} {name}",
        )
    return Installed(known=known, folder=folder)


def manifest_of(known: KnownModel) -> dict[str, Any]:
    """Return the contents of a model's manifest."""
    return {
        "manifest": 1,
        "name": known.name,
        "dimensions": known.dimensions,
        "query_prefix": known.query_prefix,
        "passage_prefix": known.passage_prefix,
        "most_tokens": known.most_tokens,
        "files": {
            piece.name: {
                "sha256": piece.sha256,
                "size": piece.size,
                "licence": piece.licence,
                "from": piece.requirement,
                "wheel_sha256": piece.wheel_sha256,
            }
            for piece in known.pieces
        },
    }


def hashed(path: Path, progress: Progress, what: str) -> str:
    """Return the SHA-256 of a file."""
    digest, done, total = hashlib.sha256(), 0, path.stat().st_size
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
            done += len(chunk)
            progress(done, total, what)
    return digest.hexdigest()


def _listed(state_folder: Path, name: str, models: Mapping[str, KnownModel]) -> ListedModel:
    if not is_there(name, state_folder):
        return ListedModel(known=models[name], installed=False)
    try:
        check_model(name, state_folder, models=models)
    except EmbedderMissing as error:
        return ListedModel(known=models[name], installed=True, problem=str(error))
    return ListedModel(known=models[name], installed=True)


def _problem(known: KnownModel, folder: Path, progress: Progress | None) -> str:
    """Return the defect of a model's folder, or nothing. With `progress` the files are read."""
    try:
        if _manifest(folder / MANIFEST) != manifest_of(known):
            return "its manifest belongs to another version"
        return next(filter(None, (_wrong(piece, folder, progress) for piece in known.pieces)), "")
    except OSError as error:
        return f"a file cannot be read ({error.strerror})"


def _wrong(piece: Piece, folder: Path, progress: Progress | None) -> str:
    path = folder / piece.name
    status = path.lstat()
    if not stat.S_ISREG(status.st_mode) or status.st_size != piece.size:
        return f"{piece.name} has the wrong size"
    if progress is not None and hashed(path, progress, f"checking {piece.name}") != piece.sha256:
        return f"{piece.name} was changed"
    return ""


def _manifest(path: Path) -> Any:
    with path.open("rb") as file:
        content = file.read(_LARGEST_MANIFEST)
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None
