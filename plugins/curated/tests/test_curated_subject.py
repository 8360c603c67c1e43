"""The USER.md of one user: exported as it is, erased with its folder, and that of no other user touched."""

import json
from pathlib import Path

import pytest

from beaver_hooks_curated import CuratedSettings, MemoryService, MemoryUnwritable, Operation, Target
from beaver_hooks_curated.errors import MemoryLocked
from beaver_hooks_curated.folders import locked
from beaver_hooks_curated.layout import USERS, user_folder
from beaver_hooks_curated.subject import NO_TENANTS, NOTES, ONE_PROFILE, OTHER_PROJECTS
from beaver_hostspecs import Subject
from beaver_hostspecs.testing import FrozenClock

ANN, BOB = Subject(user="ann"), Subject(user="bob")


def service_at(tmp_path, *, per_user=True):
    settings = CuratedSettings(per_user=per_user)
    return MemoryService(tmp_path / "project", settings, person=tmp_path / "person", clock=FrozenClock())


def write(service, target, text, user=None):
    service.change(target, [Operation(action="add", content=text)], user=user)


@pytest.fixture
def service(tmp_path):
    """Notes, and the profiles of two users; one of them has an older one in the project, with an archive."""
    found = service_at(tmp_path)
    write(found, Target.MEMORY, "Notes.")
    for user in ("ann", "bob"):
        write(found, Target.USER, f"About {user}.", user)
    write(found, Target.USER, "More about ann.", "ann")
    own = tmp_path / "project" / USERS / user_folder("ann")
    own.mkdir(parents=True)
    (own / "ARCHIVE.jsonl").write_text(json.dumps({"target": "user", "entry": "Old."}) + "\n")
    return found


def files_in(folder: Path) -> dict[str, str]:
    return {str(each.relative_to(folder)): each.read_text() for each in folder.rglob("*") if each.is_file()}


def names_in(folder: Path) -> list[str]:
    return [each.name for each in folder.iterdir()]


def test_all_files_of_a_user_are_exported_and_erased(service, tmp_path):
    """Each file of the user is copied as it is and deleted with its folder; the others stay byte for byte."""
    people = tmp_path / "person" / USERS
    profile = people / user_folder("ann") / "USER.md"
    before, bobs = profile.read_text(), files_in(people / user_folder("bob"))
    reports = [service.subject.count(ANN), service.subject.export(ANN, tmp_path / "out"), service.subject.erase(ANN)]

    held = {"entries": 2, "changes": 2, "files": 3}
    assert [(held, (NOTES, OTHER_PROJECTS))] * 3 == [(dict(each.places), each.unreached) for each in reports]
    exported = files_in(tmp_path / "out")
    assert {"person/USER.md", "person/USER.md.history.jsonl", "project/ARCHIVE.jsonl"} == {*exported}
    assert before == exported["person/USER.md"]
    assert ([user_folder("bob")], []) == (names_in(people), names_in(tmp_path / "project" / USERS))
    assert bobs == files_in(people / user_folder("bob"))
    assert ("Notes.",) == service.page(Target.MEMORY).entries
    assert {} == dict(service.subject.count(ANN).places)


def test_one_profile_for_all_users_is_of_no_person(service, tmp_path):
    """Without `perUser`, the shared USER.md stays and is named; a profile that was kept per user once is reached."""
    shared = service_at(tmp_path, per_user=False)
    write(shared, Target.USER, "About all.")
    report = shared.subject.erase(ANN)

    assert (2, (ONE_PROFILE, NOTES, OTHER_PROJECTS)) == (report.places["entries"], report.unreached)
    assert ("About all.",) == shared.page(Target.USER).entries


def test_a_tenant_reaches_no_profile(service):
    """Profiles are kept without a tenant, so a user of a tenant has none, and the report says how to reach them."""
    report = service.subject.erase(Subject(user="ann", tenant="acme"))

    assert ({}, (NO_TENANTS, NOTES, OTHER_PROJECTS)) == (dict(report.places), report.unreached)
    assert 2 == service.subject.count(ANN).places["entries"]


def test_a_folder_that_is_being_written_is_left(service, tmp_path, monkeypatch):
    """While another process writes the profile, nothing of it is exported or erased, and the error names it."""
    monkeypatch.setattr("beaver_hooks_curated.subject.PATIENCE", 0.0)
    with locked(tmp_path / "person" / USERS / user_folder("ann"), 0.0):
        with pytest.raises(MemoryLocked):
            service.subject.export(ANN, tmp_path / "out")
        with pytest.raises(MemoryLocked):
            service.subject.erase(ANN)

    assert 2 == service.subject.count(ANN).places["entries"]


def test_a_folder_that_cannot_be_deleted_is_an_error(service, monkeypatch):
    """If the disk refuses to delete the folder, the error names it with a remedy."""

    def refuse(path):
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr("beaver_hooks_curated.subject.shutil.rmtree", refuse)
    with pytest.raises(MemoryUnwritable, match=r"cannot be deleted \(Permission denied\); make it writable"):
        service.subject.erase(ANN)
