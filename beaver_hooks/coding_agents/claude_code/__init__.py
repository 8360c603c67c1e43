"""Claude Code: hooks in its settings, a tiny client for each event, and one resident process that holds the host."""
