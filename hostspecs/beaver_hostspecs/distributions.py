"""How to install another distribution of this project: by name, or from the clone that this one was installed from."""

import json
import shlex
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

OWN = "beaver-hostspecs"
HOST = "beaver-hooks"


def install_command(distribution: str, extra: str = "") -> str:
    """Return the pip command that installs a distribution here.

    Args:
        distribution: its name, for example `beaver-hooks-local`.
        extra: one of its extras.
    """
    clone = _clone()
    folder = None if clone is None else _folder(clone, distribution)
    what = distribution if folder is None else str(folder)
    return f"pip install {shlex.quote(f'{what}[{extra}]' if extra else what)}"


@cache
def _clone() -> Path | None:
    """Return the clone that the contract was installed from, or `None` where it came from a package index."""
    from importlib.metadata import PackageNotFoundError, distribution  # noqa: PLC0415 - slow, and seldom needed

    try:
        url = json.loads(distribution(OWN).read_text("direct_url.json") or "{}").get("url", "")
    except (PackageNotFoundError, ValueError, AttributeError):
        return None
    parts = urlsplit(url)
    return Path(url2pathname(parts.path)).parent if parts.scheme == "file" else None


def _folder(clone: Path, distribution: str) -> Path | None:
    """Return the folder of a distribution in a clone, or `None` where it has none."""
    folder = clone if distribution == HOST else clone / "plugins" / distribution.removeprefix(f"{HOST}-")
    return folder if (folder / "pyproject.toml").is_file() else None
