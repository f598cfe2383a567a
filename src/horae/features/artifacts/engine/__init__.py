"""Artifacts: files that executions leave behind, stored in a folder or an object store."""
