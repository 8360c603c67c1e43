"""Where earlier versions had `beaver_hooks.coding_agents.claude_code`: only the client is here, for installed hooks."""
