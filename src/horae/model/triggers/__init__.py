"""Triggers: the times at which jobs fire, and the ledger of past fires."""
