"""Rollouts: values, their spelling and pure decisions."""
