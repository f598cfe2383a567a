"""Scripts for jobs that start after executions of other jobs have ended."""
