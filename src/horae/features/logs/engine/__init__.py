"""Reading and searching log lines, by windows of time."""
