"""Replays, and the API views of dead letters."""
