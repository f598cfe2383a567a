"""Scripts for triggers, their fires, the ledger, turns and calendars."""
