"""Parsers of workflows and their steps."""
