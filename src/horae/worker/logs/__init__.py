"""Log lines of executions: capturing, queueing and telling them to the server."""
