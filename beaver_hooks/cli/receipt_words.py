"""What the words of a receipt mean."""

from collections.abc import Mapping

from beaver_hostspecs import DropReason

STATES: Mapping[str, str] = {
    "open": "It is still going on.",
    "pending": (
        "It is over, and plugins were still at work on it when this was written. Ask again in a moment; if it stays"
        " so, the process ended first, and what they had not kept by then is lost."
    ),
    "committed": "It was answered, and the plugins are done with it.",
    "dropped": "It was dropped: the memories learn nothing from it.",
}

DROPPED: Mapping[DropReason, str] = {
    DropReason.FAILED: "It failed before there was an answer.",
    DropReason.CANCELLED: "It was cancelled.",
    DropReason.BLOCKED: "A guardrail kept the answer from the user.",
    DropReason.ABANDONED: "It was not closed: it was left idle, another turn took its place, or its host closed.",
}

LOST = (
    "{calls} never ran (a full queue, a plugin taken out, or a host that closed first); what they would have kept is"
    " lost."
)

OUTCOMES: Mapping[str, str] = {
    "duplicate": "it was there already",
    "updated": "over what was there",
    "superseded": "in the place of something older",
    "gated": "a gate kept it out",
    "rejected": "it was refused",
    "deferred": "put off until later",
    "queued": "it waits, and is not kept yet",
    "skipped": "there was nothing to keep",
    "unknown": "it was sent, and it is not known whether it arrived",
    "failed": "it was not kept",
}

FAILED: Mapping[str, str] = {
    "raised": "it raised an error",
    "timeout": "it was not done in time",
    "wrong_type": "it answered what the contract does not allow",
    "cancelled": "it cancelled itself",
    "too_large": "it answered more than any model could read",
}
