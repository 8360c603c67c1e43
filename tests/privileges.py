"""Takes from root what lets it pass over the modes of files, so that a read-only folder is one."""

import contextlib
import ctypes
import os
import struct

DAC_OVERRIDE, DAC_READ_SEARCH = 1, 2
"""The capabilities by which root passes over the modes of files."""

VERSION_3 = 0x20080522


@contextlib.contextmanager
def without_override():
    """Take from root, in this thread, what lets it pass over modes: it still owns its files, the project's too."""
    if os.geteuid() != 0:
        yield
        return
    libc = ctypes.CDLL(None, use_errno=True)
    header, data = struct.pack("Ii", VERSION_3, 0), ctypes.create_string_buffer(24)
    assert 0 == libc.capget(header, data)
    before = data.raw
    effective, *rest = struct.unpack("6I", before)
    dropped = effective & ~(1 << DAC_OVERRIDE | 1 << DAC_READ_SEARCH)
    assert 0 == libc.capset(header, struct.pack("6I", dropped, *rest))
    try:
        yield
    finally:
        assert 0 == libc.capset(header, before)
