"""`beaver trust --files`: the user reviews the files that git may have brought, and confirms them."""

import difflib
import os
from pathlib import Path

from beaver_hooks.cli.checks import settings
from beaver_hooks.cli.checks.findings import report
from beaver_hooks.cli.codes import CONFIGURATION, FOUND
from beaver_hooks.cli.terminal import agreed, escaped, show
from beaver_hooks.cli.text_format import counted
from beaver_hooks.config.paths import printable
from beaver_hooks.file_trust import StateFiles
from beaver_hostspecs import scrub


def review(*, yes: bool, forget: bool, only_show: bool) -> int:
    """Show the unconfirmed files, and confirm them if the user agrees; return the exit code."""
    looked = settings.look(None)
    if looked.loaded is None:
        report(looked.findings, as_json=False)
        return CONFIGURATION
    files = StateFiles(looked.folder, os.environ)
    folders = (looked.folder, *looked.further_folders)
    if forget:
        return _forget(files, folders)
    # The review and the confirmation use the same bytes: a file may change at any time.
    unbelieved = files.unbelieved(*folders)
    for path, content in unbelieved.items():
        show(_difference(path, files.records.last(path), content), end="")
    if not unbelieved:
        show("No file needs to be confirmed.")
        return 0
    show(f"\n{counted(len(unbelieved), 'file')} may have come with a repository and must be confirmed.")
    if only_show:
        return FOUND
    if not agreed(yes=yes):
        show("Nothing was changed.", err=True)
        return FOUND
    for path, content in unbelieved.items():
        files.records.put(path, content)
    show("The files are confirmed as shown." if len(unbelieved) > 1 else "The file is confirmed as shown.")
    return 0


def _forget(files: StateFiles, folders: tuple[Path, ...]) -> int:
    paths = {path for folder in folders for path in files.records.met(folder)}
    for path in paths:
        files.records.forget(path)
    show(f"The confirmation of {counted(len(paths), 'file')} is revoked.")
    return 0


def _difference(path: Path, before: bytes, after: bytes) -> str:
    """Return the difference between a content and the last confirmed one, with every character visible."""
    name = printable(str(path))
    known, now = (escaped(each.decode("utf-8", "backslashreplace")).splitlines() for each in (before, after))
    compared = difflib.unified_diff(
        known, now, f"{name} (unchanged since you confirmed it)", f"{name} (now)", lineterm=""
    )
    return scrub("".join(f"{each}\n" for each in compared))
