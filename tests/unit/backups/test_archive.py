"""The file of a backup: read back as it was written, or refused."""

import io
import json
import os
import stat
import zipfile
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaver_hooks.backups.archive import entries_of, extract, read_manifest, write_archive
from beaver_hooks.backups.errors import BackupError, DamagedBackup
from beaver_hooks.backups.manifest import Manifest, StateEntry, encoded, is_safe

NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)
FILES = {"host/project/sessions.db": b"SQLite format 3\0" * 40, "plugins/curated/person/.USER.md": b"tea\n"}


def manifest_of(folder: Path) -> Manifest:
    state = StateEntry(name="host", version="1", held={"sessions": 2}, notes=("A note.",), problems=("A problem.",))
    return Manifest(
        made=NOON, version="1", source="/p/.beaver", parts=("project",), states=(state,), files=entries_of(folder)
    )


def written(folder: Path) -> bytes:
    """Return the bytes of an archive of `FILES`."""
    for name, content in FILES.items():
        path = folder / "copies" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    write_archive(folder / "a.zip", folder / "copies", manifest_of(folder / "copies"))
    return (folder / "a.zip").read_bytes()


@pytest.fixture(scope="module")
def content(tmp_path_factory) -> bytes:
    return written(tmp_path_factory.mktemp("archive"))


def sealed(entries: list[tuple[zipfile.ZipInfo | str, bytes]]) -> bytes:
    """Return an archive of these entries that ends with its own correct hash, as an attacker could make it."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for info, data in entries:
            archive.writestr(info, data)
        archive.comment = b"beaver-backup 1 sha256 " + b"0" * 64
    body = stream.getvalue()[:-64]
    return body + sha256(body).hexdigest().encode()


def hostile(name: str, data: bytes = b"x", *, info: zipfile.ZipInfo | None = None, size: int | None = None) -> bytes:
    """Return an archive with one file whose manifest lists it correctly."""
    listed = {"path": name, "size": len(data) if size is None else size, "sha256": sha256(data).hexdigest()}
    plain = {
        "format": 1, "made": NOON.isoformat(), "version": "1", "source": "/", "parts": [], "states": [],
        "files": [listed],
    }  # fmt: skip
    return sealed([("manifest.json", json.dumps(plain).encode()), (info or zipfile.ZipInfo(name), data)])


def refusal(content: bytes, folder: Path) -> str:
    """Return the error about an archive, after which nothing is outside of the folder for its files."""
    path, target = folder / "given.zip", folder / "within" / "target"
    path.write_bytes(content)
    target.mkdir(parents=True)
    with pytest.raises(DamagedBackup) as caught:
        extract(path, target)
    assert {path, folder / "within"} == set(folder.iterdir())
    assert [target] == list((folder / "within").iterdir())
    return str(caught.value).removeprefix(f"{path} ").removesuffix(". Nothing was restored; use another backup.")


def test_an_archive_gives_back_its_files(tmp_path):
    """Extracting gives the manifest and the bytes that were written, in private files."""
    written(tmp_path)
    target = tmp_path / "target"
    target.mkdir()

    manifest = extract(tmp_path / "a.zip", target)

    assert manifest_of(tmp_path / "copies") == manifest == read_manifest(tmp_path / "a.zip")
    assert FILES == {str(each.relative_to(target)): each.read_bytes() for each in target.rglob("*") if each.is_file()}
    modes = {stat.S_IMODE(each.stat().st_mode) for each in (tmp_path / "a.zip", *target.rglob("*")) if each.is_file()}
    assert {0o600} == modes


def test_any_zip_program_reads_an_archive(content):
    """The archive is a common zip file whose own checksums are right."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert None is archive.testzip()
        assert {"manifest.json", *FILES} == set(archive.namelist())


@given(st.data())
def test_any_changed_byte_is_noticed(content, data):
    """An archive in which one byte differs is refused, wherever the byte is."""
    place = data.draw(st.integers(0, len(content) - 1))
    change = data.draw(st.integers(1, 255))
    changed = content[:place] + bytes([content[place] ^ change]) + content[place + 1 :]

    with TemporaryDirectory() as folder:
        refusal(changed, Path(folder))


@given(st.data())
def test_a_cut_or_longer_archive_is_refused(content, data):
    """An archive that lost its end, or has got more bytes, is refused."""
    other = data.draw(st.one_of(
        st.integers(0, len(content) - 1).map(lambda end: content[:end]), st.binary(min_size=1).map(lambda more: content + more)
    ))  # fmt: skip

    with TemporaryDirectory() as folder:
        refusal(other, Path(folder))


def test_a_damaged_file_is_named(content, tmp_path):
    """The error names the file in which the bytes differ."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        info = archive.getinfo("host/project/sessions.db")
    header = content[info.header_offset :]
    place = info.header_offset + 30 + len(info.filename) + int.from_bytes(header[28:30], "little") + 20
    changed = content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]

    assert "is damaged: host/project/sessions.db" == refusal(changed, tmp_path)


@pytest.mark.parametrize(
    "name",
    [
        "../outside", "host/../../outside", "/outside", "host//a", "host/./a", "host\\..\\..\\outside", "C:/a", "host/a\nb",
        "host/..", "host/a.", "", "host/a\0b", "é", "a" * 501,
    ],
)  # fmt: skip
def test_a_path_that_leaves_its_folder_is_refused(tmp_path, name):
    """A file outside of the folder is never written, whatever the archive calls it."""
    assert not is_safe(name)
    refusal(hostile(name), tmp_path)


def test_a_link_is_refused(tmp_path):
    """An entry that a zip program would make a symbolic link is refused."""
    info = zipfile.ZipInfo("host/link")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16

    assert "is not safe to read (an entry that is no regular file)" == refusal(
        hostile("host/link", b"/etc/passwd", info=info), tmp_path
    )


def test_a_file_that_unpacks_to_more_than_it_says_is_refused(tmp_path):
    """A small archive cannot fill the disk: sizes that differ from the manifest are refused."""
    assert "holds files of other sizes than its manifest says" == refusal(
        hostile("host/a", b"x" * 999, size=9), tmp_path
    )


def test_files_that_the_manifest_does_not_list_are_refused(tmp_path):
    """An archive with one file more, or one less, is refused."""
    plain = encoded(Manifest(made=NOON, version="1", source="/", parts=(), states=(), files=()))

    assert "holds other files than its manifest says" == refusal(
        sealed([("manifest.json", plain), ("host/a", b"x")]), tmp_path
    )


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_file_twice_is_refused(tmp_path):
    """Two programs could read two different files under one name."""
    plain = encoded(Manifest(made=NOON, version="1", source="/", parts=(), states=(), files=()))

    assert "is not safe to read (a file that is there twice)" == refusal(
        sealed([("manifest.json", plain), ("manifest.json", plain)]), tmp_path
    )


@pytest.mark.parametrize(
    "change",
    [
        {"files": None}, {"files": [{}]}, {"files": [{"path": "a", "size": -1, "sha256": "0" * 64}]}, {"made": "noon"},
        {"files": [{"path": "a", "size": 1, "sha256": "x"}]}, {"made": "2026-07-01T12:00:00"}, {"parts": "project"},
        {"parts": ["other"]}, {"states": [{"name": 1}]}, {"format": 2}, {"version": None},
        {"states": [{"name": "a", "version": "1", "held": {"b": True}, "notes": [], "problems": []}]},
        {"files": [{"path": each, "size": 1, "sha256": "0" * 64} for each in ("a", "a/b")]},
        {"files": [{"path": each, "size": 1, "sha256": "0" * 64} for each in ("a", "A")]},
    ],
)  # fmt: skip
def test_a_wrong_manifest_is_refused(tmp_path, change):
    """A manifest with a missing field, a wrong type or an impossible value is no manifest."""
    plain = json.loads(encoded(Manifest(made=NOON, version="1", source="/", parts=(), states=(), files=())))

    assert "has no manifest that can be read" == refusal(
        sealed([("manifest.json", json.dumps(plain | change).encode())]), tmp_path
    )


def test_a_newer_format_is_named(content, tmp_path):
    """An archive of a later version asks for an update instead of calling itself damaged."""
    newer = content[:-87] + content[-87:].replace(b"beaver-backup 1", b"beaver-backup 2")

    assert "was made by a newer version of Beaver Hooks; update this one, and try again" == refusal(newer, tmp_path)


@pytest.mark.parametrize("kind", ["missing", "folder", "pipe", "text", "zip"])
def test_a_file_that_is_no_backup_is_refused(tmp_path, kind):
    """A missing file, a folder, a pipe, a text and a common zip file are refused at once."""
    path = tmp_path / "b"
    makers = {
        "missing": lambda: None,
        "folder": path.mkdir,
        "pipe": lambda: os.mkfifo(path),
        "text": lambda: path.write_text("no backup"),
        "zip": lambda: zipfile.ZipFile(path, "w").close(),
    }
    makers[kind]()

    with pytest.raises(DamagedBackup):
        read_manifest(path)


def test_a_disk_without_room_is_said_before_anything_is_written(content, tmp_path, monkeypatch):
    """An archive that needs more room than there is gives an error with both numbers, and writes no file."""
    (tmp_path / "a.zip").write_bytes(content)
    (tmp_path / "target").mkdir()
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=10))

    with pytest.raises(BackupError) as caught:
        extract(tmp_path / "a.zip", tmp_path / "target")

    wanted = sum(map(len, FILES.values()))
    assert f"it needs {wanted:,} bytes, and 10 are free" in str(caught.value)
    assert [] == list((tmp_path / "target").iterdir())
