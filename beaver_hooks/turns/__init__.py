"""Opens turns, puts the answers of plugins together, runs hooks in the background, commits and drops turns."""
