"""Scripts that create executions: submission, idempotency keys, unique keys, and placement in parcels."""
