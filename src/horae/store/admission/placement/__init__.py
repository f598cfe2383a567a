"""Scripts that choose the workers of executions: affinity, reservations, preemption, spreading and prefetching."""
