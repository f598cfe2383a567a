"""The tables and scripts of rollouts."""
