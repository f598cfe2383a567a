"""The archive: executions past their retention, in files beside the artifacts."""
