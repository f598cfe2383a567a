"""Rollouts: values, their API format and pure decisions."""
