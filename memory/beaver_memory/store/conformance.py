"""The suite for stores under its first name; it is in `beaver_memory.testing.stores`."""

from beaver_memory.testing.stores import STORE_CASES, Disagreement, OpenStore, StoreCase

__all__ = ["STORE_CASES", "Disagreement", "OpenStore", "StoreCase"]
