"""What the rules of reconciliation know of each language: attributes, and the words that mark a change."""
