"""Scripts by which executions end or go on: reports, cancellation, timeouts and dead letters."""
