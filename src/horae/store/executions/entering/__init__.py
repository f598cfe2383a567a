"""Scripts by which executions come to be: submission, idempotency keys and placing on a shelf."""
