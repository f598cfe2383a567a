"""Placement: decides where executions may start, by affinity, reservations and preemption."""
