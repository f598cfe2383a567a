"""Workflows as Python: steps, the expressions that join them, and options of jobs."""
