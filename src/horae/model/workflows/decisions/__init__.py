"""Workflows: jobs whose executions are graphs of child executions.

Values, what a definition means and every decision about steps, all pure: the store brings rows, the engine the clock.
"""
