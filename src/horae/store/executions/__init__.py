"""Scripts of executions. `entering` is how they come to be, `leaving` how they end, `reads` how they are read."""
