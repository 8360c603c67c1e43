"""Imports `beaver` once and forks a process for each call of it: `processes.run_beaver` starts this program.

Each line of stdin names a folder with a file `request` (words, working directory, environment) and a file `stdin`. The
forked process writes the files `stdout` and `stderr`; this one prints its exit code.
"""

import atexit
import contextlib
import gc
import inspect
import json
import os
import pkgutil
import sys
import threading
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import known_distributions

PACKAGES = (
    "beaver_hostspecs",
    "beaver_toolkit",
    "beaver_hooks",
    "beaver_hooks_curated",
    "beaver_hooks_gateway",
    "beaver_hooks_local",
    "beaver_memory",
)
LATE = ("encodings.utf_8_sig", "numpy.ma")
"""What Python and numpy import at the first use of a function."""

LANGUAGE = "en"
"""The language of most statements, whose vocabulary takes the longest to prepare."""


def import_everything() -> None:
    """Import every module that a process of `beaver` may import; a framework may be absent."""
    for package in PACKAGES:
        for module in pkgutil.walk_packages(import_module(package).__path__, f"{package}.", onerror=lambda _: None):
            if not module.name.endswith("__main__"):
                with contextlib.suppress(ImportError):
                    import_module(module.name)
    for name in LATE:
        import_module(name)


def fill_caches() -> None:
    """Call each cached function that needs no argument, and prepare vocabularies: all processes compute the same."""
    for name, module in [*sys.modules.items()]:
        if name.partition(".")[0] in PACKAGES:
            for each in [*vars(module).values()]:
                if hasattr(each, "cache_info") and _needs_nothing(each):
                    each()
    import_module("beaver_memory.reconcile.vocabulary.reader").vocabulary(LANGUAGE)
    import_module("beaver_memory.capture.vocabulary").vocabulary_of("")
    import_module("beaver_hooks.plugins.entry_points").installed()


def _needs_nothing(function: Any) -> bool:
    empty = inspect.Parameter.empty
    return all(parameter.default is not empty for parameter in inspect.signature(function).parameters.values())


def serve() -> None:
    """Fork for each request, and return in the forked process."""
    for line in sys.stdin:
        child = os.fork()
        if not child:
            return become(Path(line.rstrip("\n")))
        sys.stdout.write(f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n")
        sys.stdout.flush()
    raise SystemExit


def become(folder: Path) -> None:
    """Turn this process into the one that was asked for."""
    request = json.loads((folder / "request").read_text("utf-8"))
    new = os.O_WRONLY | os.O_CREAT
    for number, (name, flags) in enumerate([("stdin", os.O_RDONLY), ("stdout", new), ("stderr", new)]):
        os.dup2(os.open(folder / name, flags), number)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - what the server had read ahead is not for it
    sys.argv = ["beaver", *request["words"]]
    sys.path[:1] = [request["cwd"], *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]


def end(code: int) -> NoReturn:
    """End this process as Python does, except that it destroys no objects: that copies each page of the server."""
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        # Either is absent or closed in some tests.
        with contextlib.suppress(AttributeError, ValueError):
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    known_distributions.remember()
    import_everything()
    fill_caches()
    # A collection would copy each page of this process.
    gc.disable()
    gc.freeze()
    serve()
    try:
        import_module("beaver_hooks.cli").main()
    except SystemExit as left:
        end(left.code)
