"""Transactions of queues, lanes, limits, holds, circuit breakers, quotas and fair shares."""
