"""Counts the files and functions of the project that one `beaver run` passes, from the command to the exit.

The run has the offline provider, an empty state folder, and curated and local memory. Lambdas and comprehensions are
counted apart: they are no functions to a reader, and whether Python runs a comprehension as one depends on its version.
`BEAVER_PATH_LIST=1` prints the functions, by file.
"""

import os
import subprocess
import sys
import tempfile
from collections import Counter
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
    if os.environ.get("BEAVER_PATH_LIST"):
        print("\n".join(lines))
    report(lines)


def report(lines: list[str]) -> None:
    """Print the files and functions of each package, and of all."""
    functions = [line for line in lines if not line.endswith(">")]
    files = {line.split("\t")[0] for line in lines}
    per_package = Counter(_package(line) for line in functions)
    files_of = Counter(map(_package, files))
    for package, count in per_package.most_common():
        print(f"{count:6} functions in {files_of[package]:3} files of {package}")
    within = len(lines) - len(functions)
    print(f"one `beaver run` passes {len(files)} files and {len(functions)} functions")
    print(f"with {within} lambdas and comprehensions in them: {len(lines)}")


def _package(line: str) -> str:
    path = Path(line.split("\t", maxsplit=1)[0])
    parts = path.parent.parts
    return ".".join(parts[next(index for index, part in enumerate(parts) if part.startswith("beaver_")) :])


if __name__ == "__main__":
    main()
