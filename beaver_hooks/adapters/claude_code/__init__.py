"""The former place of `beaver_hooks.coding_agents.claude_code`: it keeps only the client, for installed hooks."""
