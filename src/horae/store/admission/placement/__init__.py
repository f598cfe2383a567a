"""Scripts of affinity, reservations, preemption and fetching ahead."""
