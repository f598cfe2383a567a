"""Triggers: when jobs fire, and the ledger of what fired."""
