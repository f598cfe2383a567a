"""Admission: decides whether executions may start: queues, limits, holds, circuit breakers, quotas and fair shares."""
