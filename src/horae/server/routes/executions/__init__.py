"""Routes of executions: submission, reads, explain and signals."""
