"""Commands that submit, follow and explain executions."""
