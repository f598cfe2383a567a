"""Transactions of affinity, reservations, preemption and prefetching."""
