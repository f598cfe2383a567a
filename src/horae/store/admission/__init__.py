"""Scripts for queues, lanes, limits, holds, circuit breakers, quotas and the shares of fair queues."""
