"""Receipts of turns and the health of plugins, and the reports that feed both and the audit trail."""
