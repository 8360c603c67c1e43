r"""The errors of the local memory as a plugin; those of its engine are in `beaver_memory.errors`.

EngineError
└── LocalError                the root of this tree; never raised itself
├── NotOpen               the plugin is asked before it is open, or after it was closed (in `plugin`)
├── Overloaded            too many calls wait for it
└── CommandRefused        the words of a command mean nothing that can be done (in `commands`)
"""

from beaver_memory.errors import EngineError


class LocalError(EngineError):
    """Something about the local memory as a plugin."""


class Overloaded(LocalError):
    """Too many calls wait for the local memory, so that this one was not begun."""
