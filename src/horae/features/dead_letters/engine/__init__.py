"""Dead letters in groups, their retries, and replays that run many again at a pace."""
