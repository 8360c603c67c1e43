"""The stores of memories: the source that all caches are derived from."""
