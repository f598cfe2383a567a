"""The start, the judgement and the end of rollouts."""
