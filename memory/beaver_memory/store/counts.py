"""Compares how many memories of an owner were counted when they were written with how many are there."""

from beaver_memory.records import Owner


def wrong_count(owner: Owner, counted: int, there: int) -> str:
    """Return the sentence about an owner with another number of memories than was counted."""
    of = f"user {owner.user!a}" if owner.user else "the user without a name"
    within = f" of tenant {owner.tenant!a}" if owner.tenant else ""
    if there < counted:
        return f"{counted - there} of {counted} memories of {of}{within} vanished: restore the database from a backup."
    return f"There are {there} memories of {of}{within}, and {counted} were counted."
