"""The archive: executions past their retention, kept as files in a folder or a bucket."""
