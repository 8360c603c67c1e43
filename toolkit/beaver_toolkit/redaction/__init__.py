"""Redaction: finds credentials, card and account numbers in a text, and replaces them by the name of their kind."""
