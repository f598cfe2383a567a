"""Spans that tests look at instead of sending them."""

from horae.model.base.trace import TraceContext
from horae.model.executions.tracer import TraceSpan


class Spans:
    """Keeps what it is told; of no trace that begins here when it is `quiet`, of none at all when it is `deaf`."""

    def __init__(self) -> None:
        self.all: list[TraceSpan] = []
        self.quiet = self.deaf = False
        self.counts = {"sent": 0, "failed": 0, "dropped": 0}

    @property
    def names(self) -> list[str]:
        return [span.name for span in self.all]

    def named(self, name: str) -> TraceSpan:
        (found,) = [span for span in self.all if span.name == name]
        return found

    def samples(self, trace_id: str, given: TraceContext | None = None) -> bool:
        return not self.deaf and (given is not None or not self.quiet)

    def record(self, span: TraceSpan) -> None:
        self.all.append(span)

    def serve_users(self) -> None: ...

    async def close(self) -> None: ...
