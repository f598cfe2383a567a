"""Deletion of executions and fires whose retention is over."""
