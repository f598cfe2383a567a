"""Replays, and dead letters as the API shows them."""
