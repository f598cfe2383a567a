"""Workers: their sessions, the exchanges that bring them work, the rescue of lost ones, and autoscaling."""
