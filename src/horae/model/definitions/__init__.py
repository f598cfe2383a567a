"""Jobs: the definition, its versions, retries and timeouts."""
