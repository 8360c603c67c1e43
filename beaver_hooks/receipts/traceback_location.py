"""The place that raised an error, without source lines and without values."""

from collections.abc import Iterator
from types import CodeType

import attrs

HOST_PACKAGE = "beaver_hooks"
"""The host's own frames are above those of every plugin."""

MOST_FRAMES = 20


@attrs.frozen
class Frame:
    """One frame of a traceback."""

    module: str
    line: int
    function: str

    @property
    def package(self) -> str:
        """The top-level package of the module."""
        return self.module.partition(".")[0]

    def __str__(self) -> str:
        return f"{self.module}:{self.line} in {self.function}"


def frames_of(error: BaseException) -> tuple[Frame, ...]:
    """Return the frames of an error from the plugin's first frame on, the innermost last; none if never raised."""
    frames = tuple(_walk(error))
    ours = next((index for index, each in enumerate(frames) if each.package != HOST_PACKAGE), 0)
    return frames[ours:][-MOST_FRAMES:]


def place_of(error: BaseException) -> str | None:
    """Return `module:line` of the innermost frame in the plugin's own package, else of the innermost frame."""
    frames = frames_of(error)
    own = [each for each in frames if each.package == frames[0].package]
    return f"{own[-1].module}:{own[-1].line}" if own else None


def _walk(error: BaseException) -> Iterator[Frame]:
    traceback = error.__traceback__
    while traceback is not None:
        code: CodeType = traceback.tb_frame.f_code
        module = traceback.tb_frame.f_globals.get("__name__")
        yield Frame(module if isinstance(module, str) else "unknown", traceback.tb_lineno, code.co_qualname)
        traceback = traceback.tb_next
