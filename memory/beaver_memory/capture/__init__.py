"""Capture: decides what to keep of a turn. Extractors find candidates, and gates admit them; nothing is stored here."""
