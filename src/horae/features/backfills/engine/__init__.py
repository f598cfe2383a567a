"""Backfills as people ask for them, and the service that works through them."""
