"""Two runs of `beaver`, each a process of its own: what the first is told, the second knows. Run it with `make demo`.

There is no network and no language model: the offline provider answers from what it is given, and says from where.
"""

import os
import shlex
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

STORY = (
    ("A configuration, with a provider that needs no network and no key", "init --provider offline"),
    ("The first run is told something, and uses the tool `memory`", "run 'Remember that we release on Thursday.'"),
    ("The second run, another process and another session, knows it", "run 'When do we release?'"),
    ("Where it is kept: a file that people can read and edit", "memory curated show"),
    ("How each memory is", "memory"),
    ("Why the second run knew it: its receipt, which holds no content", "why"),
    ("Nobody has changed the audit trail since", "audit verify"),
)
"""What is told, and the command that shows it."""


def say(text: str, *, indent: str = "") -> None:
    """Print `text` in 80 columns."""
    for line in text.splitlines():
        print(textwrap.fill(line, 80, initial_indent=indent, subsequent_indent=indent + "  ") or indent.rstrip())


def beaver(arguments: str, folder: Path) -> str:
    """Run `beaver` in a process of its own; return what it says."""
    environment = {**os.environ, "XDG_STATE_HOME": str(folder / "state"), "NO_COLOR": "1"}
    environment.pop("BEAVER_CONFIG", None)
    done = subprocess.run(
        [sys.executable, "-m", "beaver_hooks.cli", *shlex.split(arguments)],
        cwd=folder, env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return (done.stdout + done.stderr).replace(str(folder), ".")


def main() -> None:
    """Tell the story in a temporary folder."""
    with tempfile.TemporaryDirectory() as folder:
        for title, arguments in STORY:
            print(f"\n== {title} ".ljust(81, "="))
            say(f"$ beaver {arguments}")
            say(beaver(arguments, Path(folder).resolve()), indent="  ")


if __name__ == "__main__":
    main()
