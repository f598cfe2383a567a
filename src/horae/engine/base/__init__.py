"""What the rest of the engine stands on: hints, counters, presence, sealing and time zones."""
