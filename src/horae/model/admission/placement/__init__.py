"""Decisions on where work may start: affinity, reservations, preemption and fetching ahead."""
