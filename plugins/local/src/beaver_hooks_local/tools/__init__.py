"""The tools of the local memory: what a model looks up by itself, and the one by which it writes."""
