"""The cases of the conformance suite of stores, by subject."""
