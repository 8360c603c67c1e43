"""Reconciliation: decides what a new memory does to those that the store has, and carries that out."""
