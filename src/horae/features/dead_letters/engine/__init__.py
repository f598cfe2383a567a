"""Operations on dead letters: lists and groups, retries, and replays, which retry many at a limited rate."""
