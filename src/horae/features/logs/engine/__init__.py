"""Reading and searching log lines, window by window."""
