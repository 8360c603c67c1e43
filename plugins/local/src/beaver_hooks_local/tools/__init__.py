"""The tools of the local memory: those by which a model reads memories, and the one by which it writes them."""
