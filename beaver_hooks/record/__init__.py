"""What is remembered of what happened: health, receipts, and the reports that feed them and the audit trail."""
