"""What an execution leaves behind besides its result: log lines and artifacts."""
