"""Explanations of the words in a receipt."""

from collections.abc import Mapping

from beaver_hostspecs import DropReason

STATES: Mapping[str, str] = {
    "open": "It is still going on.",
    "pending": (
        "It is over, but plugins were still working on it when this receipt was written. Ask again in a moment; if"
        " this stays, the process ended too early, and what the plugins had not stored is lost."
    ),
    "committed": "It was answered, and all plugins have finished.",
    "dropped": "It was dropped, so plugins learn nothing from it.",
}

DROPPED: Mapping[DropReason, str] = {
    DropReason.FAILED: "It failed before it had an answer.",
    DropReason.CANCELLED: "It was cancelled.",
    DropReason.BLOCKED: "A guardrail blocked the answer.",
    DropReason.ABANDONED: "It was never closed: it was idle too long, another turn replaced it, or the host closed.",
}

LOST = (
    "{calls} never ran (a full queue, a plugin that was removed, or a host that closed first); what they would have"
    " stored is lost."
)

OUTCOMES: Mapping[str, str] = {
    "duplicate": "it was stored already",
    "updated": "merged into an existing entry",
    "superseded": "in place of an older entry",
    "gated": "a gate rejected it",
    "rejected": "it was refused",
    "deferred": "put off until later",
    "queued": "it waits for approval, and is not stored yet",
    "skipped": "the turn held nothing to store",
    "unknown": "it was sent, and the plugin does not know whether it arrived",
    "failed": "it was not stored",
}

FAILED: Mapping[str, str] = {
    "raised": "it raised an error",
    "timeout": "it did not finish in time",
    "wrong_type": "its answer breaks the contract",
    "cancelled": "it cancelled itself",
    "too_large": "its answer is too long for any model",
}
