"""Recall before a prompt: the gate, the prompt index, and what the conversation already holds."""
