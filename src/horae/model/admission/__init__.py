"""Decisions on whether work may start: limits, queues, policies, holds, circuit breakers and quotas."""
