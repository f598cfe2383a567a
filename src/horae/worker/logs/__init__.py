"""Log lines of executions: capturing, queueing and sending them to the server."""
