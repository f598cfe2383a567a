"""Shared parts of the engine: hints, counters, presence, sealing and time zones."""
