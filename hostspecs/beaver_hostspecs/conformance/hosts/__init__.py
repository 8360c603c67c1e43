"""The suite for hosts: turns of every shape, and every way in which a turn can fail."""

from beaver_hostspecs.conformance.hosts import ending, faults, placing, turns

HOST_CASES = (*turns.CASES, *ending.CASES, *placing.CASES, *faults.CASES)
"""Every case, in the order of the report."""

__all__ = ["HOST_CASES"]
