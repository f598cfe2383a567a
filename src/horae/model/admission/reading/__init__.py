"""Readers of the fields of limits, policies, placement, queues and circuit breakers."""
