"""Disks that cannot be written: each is a context that yields how to hinder writing in a folder, and how to allow it."""

import contextlib
import subprocess

import pytest
from privileges import without_override

ROOM = 2 * 2**20
"""Bytes of a small disk."""


@contextlib.contextmanager
def a_folder(folder):
    """A folder that may only be read; its files could be written."""
    with without_override():
        try:
            yield lambda: folder.chmod(0o500), lambda: folder.chmod(0o700)
        finally:
            folder.chmod(0o700)


@contextlib.contextmanager
def files(folder):
    """Files that may only be read, in a folder that can be written."""

    def give(mode):
        for path in folder.iterdir():
            path.chmod(mode)

    with without_override():
        yield lambda: give(0o400), lambda: give(0o600)


@contextlib.contextmanager
def a_read_only_disk(folder):
    """A disk that is mounted for reading alone."""
    with _small_disk(folder):
        yield lambda: _mounted("remount,ro", folder), lambda: _mounted("remount,rw", folder)


@contextlib.contextmanager
def a_full_disk(folder):
    """A disk without room."""
    filler = folder / "filler"

    def fill():
        with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(4096))

    with _small_disk(folder):
        yield fill, filler.unlink


@contextlib.contextmanager
def _small_disk(folder):
    """Mount a small disk; skip the test where that is not allowed."""
    mount = ["mount", "-t", "tmpfs", "-o", f"size={ROOM}", "tmpfs", folder]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("mounting a disk is not allowed here")
    try:
        yield
    finally:
        subprocess.run(["umount", folder], check=True)


def _mounted(options, folder):
    subprocess.run(["mount", "-o", options, folder], check=True)
