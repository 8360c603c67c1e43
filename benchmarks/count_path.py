"""Counts the files and functions of the project that one `beaver run` passes, from the command to the exit.

The run has the offline provider, an empty state folder, and curated and local memory. `BEAVER_PATH_LIST=1` prints the
functions, by file.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

PROFILED = """
import atexit, os, sys, threading
seen = set()
def note(frame, event, _):
    if event == "call":
        code = frame.f_code
        # Bit 1 is set for functions only, not for modules and bodies of classes.
        if code.co_flags & 1 and "beaver_" in code.co_filename and not code.co_filename.startswith("<"):
            seen.add((code.co_filename, code.co_qualname))
def write():
    sys.setprofile(None)
    with open(os.environ["BEAVER_PATH_FILE"], "w") as file:
        file.writelines(f"{name}\\t{function}\\n" for name, function in sorted(seen))
atexit.register(write)
threading.setprofile(note)
sys.setprofile(note)
from beaver_hooks.cli import main
sys.argv = ["beaver", "run", "When do we release?"]
main()
"""


def main() -> None:
    """Run once, and print the numbers."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        environment = {**os.environ, "HOME": name, "BEAVER_PATH_FILE": str(folder / "seen")}
        work = folder / "work"
        work.mkdir()
        for command in (
            ["-m", "beaver_hooks.cli", "init", "--local"],
            ["-m", "beaver_hooks.cli", "run", "Remember that we release on Thursday."],
            ["-c", PROFILED],
        ):
            subprocess.run([sys.executable, *command], cwd=work, env=environment, check=True, stdout=subprocess.DEVNULL)
        lines = (folder / "seen").read_text("utf-8").splitlines()
    files = {line.split("\t")[0] for line in lines}
    if os.environ.get("BEAVER_PATH_LIST"):
        print("\n".join(lines))
    print(f"one `beaver run` passes {len(files)} files and {len(lines)} functions")


if __name__ == "__main__":
    main()
