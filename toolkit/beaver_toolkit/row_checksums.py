"""Checksums of rows in databases. They detect accidents and do not defend against an attacker."""

from zlib import crc32


def row_checksum(*values: str | bytes | int | None) -> int:
    """Return the CRC-32 of the values of a row.

    Each value has its type and its length before it, so that no text moves from a column to its neighbour unnoticed.
    Texts are UTF-8, and a lone surrogate in them has three bytes.
    """
    found = 0
    for value in values:
        data = b"" if value is None else _data(value)
        found = crc32(data, crc32(f"{type(value).__name__[0]}{len(data)}:".encode(), found))
    return found


def _data(value: str | bytes | int) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")
