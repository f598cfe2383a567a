"""The engine of dead letters: lists and groups, retries, and replays that retry many at a limited rate."""
