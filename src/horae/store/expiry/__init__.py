"""Deletion of executions and fires past their retention."""
