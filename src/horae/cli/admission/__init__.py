"""Commands for queues and circuit breakers, which decide whether executions may start."""
