"""Rollouts: run a new version of a job for a share of its executions first."""
