"""Readers of workflows and their steps."""
