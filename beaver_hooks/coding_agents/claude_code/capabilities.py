"""What Claude Code can do for memory."""

from beaver_hostspecs.conformance import Card

CARD = Card(
    host="Claude Code",
    reference_placement="before_user",
    reference_persistence="persisted",
    system_prompt=False,
    sees_errors=False,
    sees_cancellation=False,
    sees_blocks=False,
    offers_tools=False,
    has_user_id=False,
    announces_compaction=True,
    notes={
        "reference_placement": "Some models get them after the user's text.",
        "reference_persistence": "Claude Code keeps what is added to its context, and sends it again; it has a budget.",
        "reference_role": "Some models get them as a `system` message in the middle of the conversation.",
        "system_prompt": "Its hooks reach none: rules come when a session starts, blocks with its first prompt.",
        "sees_errors": "No event reports it; the turn is dropped when the session goes on.",
        "sees_cancellation": "No event reports it; the turn is dropped when the session goes on.",
        "sees_blocks": "It has no guardrail for answers.",
        "offers_tools": "Plugins' tools come by MCP: `beaver mcp`.",
        "has_user_id": "Its events name no user.",
    },
)
