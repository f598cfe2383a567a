"""Streaming answers: events as they happen, and contents that are sent in pieces."""
