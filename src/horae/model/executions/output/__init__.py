"""Log lines and artifacts: the output of an execution besides its result."""
