"""Decides whether work may start: queues, limits, holds, circuit breakers, quotas and fair shares."""
