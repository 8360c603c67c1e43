"""The key is made once, is private, and is never replaced."""

import errno
import os
import stat

import pytest

from beaver_hooks.audit.key import KEY_FILE, Key, make_key, read_key
from beaver_hostspecs import AuditUnavailable

REMEDY = " Restore the file (mode 0600) from a backup, or move it and host.db away together to start a new audit trail."


def names(folder):
    return [each.name for each in folder.iterdir()]


def test_a_key_is_made_and_found_again(tmp_path):
    """32 random bytes, as hex, in a private file, and nothing beside it."""
    assert read_key(tmp_path) is None
    key = make_key(tmp_path)

    assert (key, key) == (read_key(tmp_path), make_key(tmp_path))
    assert (32, f"{key.secret.hex()}\n") == (len(key.secret), (tmp_path / KEY_FILE).read_text())
    assert stat.S_IMODE((tmp_path / KEY_FILE).stat().st_mode) == 0o600
    assert names(tmp_path) == [KEY_FILE]
    assert key.secret.hex() not in repr(key)


def test_a_loose_key_is_tightened(tmp_path):
    """Reading a key that others could read makes it private, and the result reports this once."""
    key = make_key(tmp_path)
    (tmp_path / KEY_FILE).chmod(0o644)

    assert Key(secret=key.secret, tightened=True) == read_key(tmp_path)
    assert key == read_key(tmp_path)


def test_a_loose_key_that_cannot_be_tightened_is_refused(tmp_path, monkeypatch):
    """A key that stays readable for others is no key."""
    make_key(tmp_path)
    (tmp_path / KEY_FILE).chmod(0o644)
    monkeypatch.setattr(os, "fchmod", fail_with(errno.EPERM))

    assert f"may be read by others (Operation not permitted).{REMEDY}" == problem(tmp_path, read_key)


def fail_with(number):
    def fail(*_, **__):
        raise OSError(number, os.strerror(number))

    return fail


def problem(folder, call):
    """Return the part of the error after the path of the key."""
    with pytest.raises(AuditUnavailable) as caught:
        call(folder)
    return str(caught.value).removeprefix(f"The audit key {folder / KEY_FILE} ")


@pytest.mark.parametrize("content", [b"", b"short", b"g" * 64, b"0" * 63, b"0" * 66, b"0" * 64 + b"\n\n", b"A" * 64])
def test_a_file_that_holds_no_key_is_left_alone(tmp_path, content):
    """A file that holds no key is never overwritten: records may depend on its earlier content."""
    (tmp_path / KEY_FILE).write_bytes(content)
    (tmp_path / KEY_FILE).chmod(0o600)

    assert f"holds no key.{REMEDY}" == problem(tmp_path, read_key) == problem(tmp_path, make_key)
    assert content == (tmp_path / KEY_FILE).read_bytes()


def test_a_linked_key_is_refused(tmp_path):
    """A symbolic link is not followed, wherever it leads."""
    (tmp_path / KEY_FILE).symlink_to(tmp_path / "elsewhere")

    assert problem(tmp_path, make_key).startswith("cannot be read (")
    assert not (tmp_path / "elsewhere").exists()


def test_a_folder_that_takes_no_file_is_explained(tmp_path):
    """A missing folder is one sentence, too."""
    assert f"cannot be written (No such file or directory).{REMEDY}" == problem(tmp_path / "gone", make_key)


def test_a_key_that_vanishes_is_noticed(tmp_path, monkeypatch):
    """A key that another process deletes at once ends in a sentence, not in a second key."""
    monkeypatch.setattr("beaver_hooks.audit.key.create_once", lambda *_: True)

    assert f"disappeared while it was written.{REMEDY}" == problem(tmp_path, make_key)
