r"""The errors of the local memory as a plugin; those of its engine are in `beaver_memory.errors`.

EngineError
└── LocalError                the root of this tree; never raised itself
└── CommandRefused        the words of a command are invalid (in `commands`)
"""

from beaver_memory.errors import EngineError


class LocalError(EngineError):
    """The root of the errors of the plugin."""
