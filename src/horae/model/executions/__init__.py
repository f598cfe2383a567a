"""Executions: the state machine, parcels and slices, outcomes, signals and results."""
