"""Artifacts: files of executions, in a folder or an object store."""
