"""Traces: spans of submissions, executions and workflows, exported by OpenTelemetry."""
