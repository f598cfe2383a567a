"""Reads and searches of log lines, window by window."""
