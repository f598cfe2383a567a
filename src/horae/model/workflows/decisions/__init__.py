"""Workflows: jobs whose executions are graphs of child executions.

Values, definitions and every decision about steps, all pure: the store supplies rows, the engine the clock.
"""
