"""Decides where work may start: affinity, reservations and preemption."""
