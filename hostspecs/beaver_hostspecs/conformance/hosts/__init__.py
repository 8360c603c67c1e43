"""The suite for hosts: turns of every shape, and every way in which a turn can fail."""

from beaver_hostspecs.conformance.hosts import compaction, faults, positions, turns, unanswered

HOST_CASES = (*turns.CASES, *unanswered.CASES, *positions.CASES, *faults.CASES, *compaction.CASES)
"""Every case, in the order of the report."""

__all__ = ["HOST_CASES"]
