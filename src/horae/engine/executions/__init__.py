"""Executions from submission to retention: submit, resolve, promote, time out, explain and sweep."""
