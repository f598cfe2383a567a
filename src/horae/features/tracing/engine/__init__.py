"""Tracing: spans of executions, sent to a collector. It is off unless an endpoint is configured.

`spans` defines the spans; `otel` sends them by OpenTelemetry's SDK, an optional extra. Servers and workers use both.
"""
