"""The archive: executions past their retention, in files next to the artifacts."""
