"""Which of the two memories a caller may read and write. Pure.

MEMORY.md and USER.md are the owner's: a caller of full trust reads and writes them, one of inner trust reads them, all
others have no access. A USER.md that is kept per user (`perUser`) is that user's at any trust.
"""

from beaver_hooks_curated.entries import Target
from beaver_hostspecs import Caller, Trust

Targets = tuple[Target, ...]
BOTH: Targets = tuple(Target)


def readable(caller: Caller, *, per_user: bool) -> Targets:
    """Return the targets that a caller may read."""
    return _reached(caller, Trust.INNER, per_user=per_user)


def writable(caller: Caller, *, per_user: bool) -> Targets:
    """Return the targets that a caller may write."""
    return _reached(caller, Trust.FULL, per_user=per_user)


def _reached(caller: Caller, needed: Trust, *, per_user: bool) -> Targets:
    if caller.trust.reaches(needed):
        return BOTH
    own = per_user and caller.user is not None
    return (Target.USER,) if own else ()
