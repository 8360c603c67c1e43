"""What a later statement does to an earlier one."""

from typing import Literal

import attrs

Verdict = Literal["UPDATE", "DELETE", "NONE"]


@attrs.frozen(kw_only=True)
class Finding:
    """What a later statement does to an earlier one, and why."""

    verdict: Verdict
    reason: str
