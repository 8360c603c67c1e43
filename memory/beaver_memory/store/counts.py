"""The sentences about damage that both databases find, each with its remedy."""

from beaver_memory.records import Owner

RESTORE = "restore the database from a backup"


def damaged_memory(id_: int, where: str) -> str:
    """Return the sentence about a memory that fails its checksum; `where` names its tenant."""
    return (
        f"Memory {id_}{where} fails its checksum and is not shown: keep what can be read of it with"
        f" `beaver memory export --damaged`, then {RESTORE}, or erase it with"
        f" `beaver memory forget --damaged {id_} --yes`."
    )


def broken_rule(count: int, what: str) -> str:
    """Return the sentence about rows that break a rule of the tables."""
    return f"{count} {what}: {RESTORE}."


def wrong_count(owner: Owner, counted: int, there: int) -> str:
    """Return the sentence about an owner with another number of memories than was counted."""
    of = f"{owner.kind} {owner.user!a}" if owner.user else "the user without a name"
    within = f" of tenant {owner.tenant!a}" if owner.tenant else ""
    if there < counted:
        return f"{counted - there} of {counted} memories of {of}{within} vanished: {RESTORE}."
    return f"There are {there} memories of {of}{within}, and {counted} were counted."
