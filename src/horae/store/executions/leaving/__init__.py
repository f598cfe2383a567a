"""Scripts that end executions or their attempts: reports, cancellation, timeouts and dead letters."""
