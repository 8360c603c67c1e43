"""Runs the client for hooks that an earlier version has installed: their commands name this file."""

import os
import sys

# Not pathlib, which takes longer to import than the client needs for its work.
# ruff: noqa: PTH100, PTH118, PTH120
CLIENT = os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "..", "..", "coding_agents", "claude_code", "client.py"
)

if __name__ == "__main__":
    os.execv(sys.executable, [sys.executable, "-I", "-S", CLIENT, *sys.argv[1:]])  # noqa: S606 - our own file
