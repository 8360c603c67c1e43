"""Opens turns, combines the contributions of plugins, runs hooks in the background, commits and drops turns."""
