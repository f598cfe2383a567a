"""Tracing: what happens to executions, told as spans to whoever collects them. Off unless somebody is to be told.

`spans` says what is told; `otel` sends it by OpenTelemetry's SDK, an extra. Workers use both as servers do.
"""
