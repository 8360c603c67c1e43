"""Search results as the references that a host renders, without the user's id or the credential in them."""

import re
from hashlib import sha256

from beaver_hooks_gateway.wire import Result
from beaver_hostspecs import Reference, scrub

_OPAQUE = re.compile(r"[\w.:@/+-]{1,128}", re.ASCII)


def reference(result: Result, user_id: str) -> Reference:
    """Return the reference for a result. A user key that the gateway repeats in it is masked."""
    resource = result.resource_uri is not None or result.source_scope == "resources"
    return Reference(
        text=scrub(result.text),
        kind="resource" if resource else "conversation",
        id=reference_id(result, user_id),
        score=result.score,
        scope=result.source_scope and scrub(result.source_scope),
        session=result.session_id and scrub(result.session_id),
        uri=result.resource_uri and scrub(result.resource_uri),
    )


def reference_id(result: Result, user_id: str) -> str:
    """Return an id for receipts: the gateway's own, or a hash where that may hold the user's id or text."""
    given = scrub(result.id or result.text)
    if result.id is not None and _OPAQUE.fullmatch(given) and user_id not in given:
        return given
    return f"sha256-{sha256(given.encode()).hexdigest()[:16]}"
