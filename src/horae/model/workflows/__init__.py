"""Workflows: graphs of steps, and approvals."""
