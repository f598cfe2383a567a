"""Workflows as Python: steps, the expressions that connect them, and options of jobs."""
