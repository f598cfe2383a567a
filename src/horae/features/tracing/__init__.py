"""Traces: spans of submissions, executions and workflows, exported with OpenTelemetry."""

from horae.feature import Feature

FEATURE = Feature(
    name="tracing",
    about="Spans of submissions, executions and workflows, by OpenTelemetry.",
    part="horae.features.tracing.part:TracingPart",
    open_tracer="horae.features.tracing.engine.otel:open_tracer",
    open_sink="horae.features.tracing.engine.otel:open_sink",
    metrics="horae.features.tracing.metrics:SpanMetrics",
)
