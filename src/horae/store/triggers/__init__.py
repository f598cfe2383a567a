"""Transactions of triggers: fires, the ledger, turns and calendars."""
