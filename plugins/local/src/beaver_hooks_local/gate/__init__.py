"""Whether a turn needs a recall at all: pure decisions, and the state that they are made on."""
