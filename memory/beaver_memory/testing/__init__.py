"""What authors of stores test with: the rules for every store of memories. The engine imports nothing of it."""
