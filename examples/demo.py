"""The first minute with `beaver`: store a fact, ask in another process, watch a plugin fail, forget it, and prove it.

Run it with `make demo`. Every line that begins with `$` is a process of its own. There is no network and no language
model: the provider `offline` answers from the recalled memory.
"""

import os
import shlex
import subprocess
import sys
import tempfile
import textwrap
from datetime import UTC, datetime
from pathlib import Path

FACT = "We release on Thursday."
SAID = "My sister lives in Oslo."
ASKED = "run 'Where does my sister live?'"
QUESTION = "run 'When do we release?'"

BROKEN = """
from beaver_hostspecs import hookimpl

class Broken:
    @hookimpl
    async def before_prompt(self):
        raise ConnectionError("its server is down")
"""
"""A plugin that fails at every call."""


class Demo:
    """Runs `beaver` in a folder that is its home, and prints its output.

    Args:
        home: the folder; nothing outside of it is read or written.
    """

    def __init__(self, home: Path) -> None:
        self.home = home
        self.site = home / "site"
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("BEAVER_", "XDG_"))}
        self.environment = {**kept, "HOME": str(home), "NO_COLOR": "1", "BEAVER_LOG_LEVEL": "critical"}

    def step(self, title: str) -> None:
        """Begin another part."""
        print(f"\n{title}")

    def beaver(self, arguments: str, *, part: str = "") -> None:
        """Run a command and print its output, or the part about one plugin."""
        print(f"  $ beaver {arguments}")
        said = self.run(arguments)
        print(textwrap.indent((_part(said, part) if part else said).rstrip(), "    "))

    def run(self, arguments: str) -> str:
        """Run a command; return its output."""
        command = [sys.executable, "-m", "beaver_hooks.cli", *shlex.split(arguments)]
        done = subprocess.run(
            command, cwd=self.home, env=self.environment, capture_output=True, text=True, check=True
        )  # fmt: skip
        return done.stdout + done.stderr

    def look_for(self, text: str) -> None:
        """Print which files below the home hold a text."""
        files = (each for each in self.home.rglob("*") if each.is_file() and self.site not in each.parents)
        found = sorted(str(each.relative_to(self.home)) for each in files if text.encode() in each.read_bytes())
        print(f"  $ grep --recursive --files-with-matches '{text}' .\n    {', '.join(found) or '(no file)'}")

    def install_broken(self) -> None:
        """Install the plugin that fails, as a distribution of its own."""
        info = self.site / "beaver_broken-1.0.dist-info"
        info.mkdir(parents=True)
        (self.site / "beaver_broken.py").write_text(BROKEN)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: beaver-broken\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text("[beaver_hooks]\nbroken = beaver_broken:Broken\n")
        self.environment["PYTHONPATH"] = str(self.site)


def _part(said: str, plugin: str) -> str:
    """Return the lines of a report about one plugin."""
    lines = said.splitlines()
    begin = next(at for at, line in enumerate(lines) if line.split() and line.split()[0] == plugin)
    end = next((at for at in range(begin + 1, len(lines)) if not lines[at].startswith(" ")), len(lines))
    return "\n".join(line for line in lines[begin:end] if line)


def main() -> None:
    """Run the demo."""
    with tempfile.TemporaryDirectory() as folder:
        demo = Demo(Path(folder).resolve())
        demo.run("init --local --provider offline")

        demo.step("Tell it a fact, and ask in another process.")
        demo.beaver(f"memory add '{FACT}'")
        demo.beaver(QUESTION)

        demo.step("Why did it know that?")
        demo.beaver("why", part="local")

        demo.step("It learns by itself from a chat. Correct it; ask for now, and for before.")
        demo.beaver(f"run '{SAID}'")
        demo.beaver(ASKED)
        before = datetime.now(UTC).isoformat(timespec="milliseconds").removesuffix("+00:00")
        demo.beaver("memory correct 2 'My sister lives in Rome.'")
        demo.beaver(ASKED)
        demo.beaver(f"memory search sister --as-of {before}")

        demo.step("A plugin that fails costs the user nothing, and is named.")
        demo.install_broken()
        demo.run("memory add 'Kim tests the release.'")
        demo.beaver("run 'Who tests the release?'")
        demo.beaver("memory", part="broken")

        demo.step("Forget it, with the conversation that quotes it, and look for it in the files.")
        demo.beaver("memory forget 1 --yes")
        demo.look_for(FACT)
        demo.beaver("sessions forget --yes release thursday")
        demo.look_for(FACT)

        demo.step("Prove that forgetting reaches every file, with a planted memory.")
        demo.beaver("memory forget --prove")


if __name__ == "__main__":
    main()
