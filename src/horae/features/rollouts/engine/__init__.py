"""The start, judgement and end of rollouts, and the choice of an execution's version."""
