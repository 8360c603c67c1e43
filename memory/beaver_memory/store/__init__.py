"""Where memories are kept: the truth."""
