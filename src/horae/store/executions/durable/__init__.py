"""Scripts of durable functions: remembered steps, signals and waits."""
