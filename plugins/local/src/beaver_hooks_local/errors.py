r"""The errors of the local memory as a plugin; those of its engine are in `beaver_memory.errors`.

EngineError
└── LocalError                the root of this tree; never raised itself
├── NotOpen               the plugin is called before it is open, or after it was closed (in `plugin`)
├── Overloaded            too many calls wait for it
└── CommandRefused        the words of a command are invalid (in `commands`)
"""

from beaver_memory.errors import EngineError


class LocalError(EngineError):
    """The root of the errors of the plugin."""


class Overloaded(LocalError):
    """Too many calls wait for the local memory, so it did not begin this one."""
