"""Decisions on which worker may run an execution: needs, affinity, spreading, reservations, preemption, prefetching."""
