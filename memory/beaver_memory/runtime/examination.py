"""Examines the databases of a memory that need not be open."""

from pathlib import Path

from beaver_memory.runtime.memory_writes import WriteGate
from beaver_memory.store.joint import PERSONAL_IDS
from beaver_memory.store.sqlite.examination import Examination, examine
from beaver_toolkit.redaction.redactor import Policy, Redactor

__all__ = ["Examination", "examined"]


def examined(path: Path, policy: Policy, *, of_person: bool = False) -> Examination:
    """Return the examination of a database.

    A memory is refused that holds a secret by the rules of today.

    Args:
        path: the database.
        policy: what counts as a secret.
        of_person: whether it is that of the person, beside one of a project, so that its ids are shown with an offset.

    Raises:
        StoreError: it cannot be read; says why, and what to do.
    """
    gate = WriteGate(Redactor(policy))
    refuses, shift = (lambda memory: gate.refusal(memory) is not None), PERSONAL_IDS if of_person else 0
    return examine(path, refuses=refuses, shift=shift)
