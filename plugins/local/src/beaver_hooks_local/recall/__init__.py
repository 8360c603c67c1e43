"""Recall before a prompt: the gate, the prompt index, and the check for memories that the conversation contains."""
