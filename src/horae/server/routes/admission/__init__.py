"""Routes of queues, holds, circuit breakers and quotas."""
