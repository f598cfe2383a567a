"""Artifacts: files and large results that executions leave behind, in a folder or a bucket."""
