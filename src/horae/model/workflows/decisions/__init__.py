"""Workflows: jobs whose executions are graphs of child executions.

Definitions, and every decision about steps. All functions are pure: the store passes rows to them, the engine the time.
"""
