"""The archive: executions past their retention, in files that are stored beside the artifacts."""
