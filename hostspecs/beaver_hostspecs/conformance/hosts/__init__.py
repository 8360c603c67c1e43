"""The suite for hosts: every shape a turn can take, and every way in which it can go wrong."""

from beaver_hostspecs.conformance.hosts import ending, faults, placing, turns

HOST_CASES = (*turns.CASES, *ending.CASES, *placing.CASES, *faults.CASES)
"""Every case, in the order of the report."""

__all__ = ["HOST_CASES"]
