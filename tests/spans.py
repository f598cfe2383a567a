"""Spans that tests look at instead of sending them."""

from horae.engine.tracing.spans import Span


class Spans:
    """Keeps what it is told; tells of no trace that begins here when it is `quiet`."""

    def __init__(self, *, quiet: bool = False) -> None:
        self.all: list[Span] = []
        self.quiet = quiet

    @property
    def names(self) -> list[str]:
        return [span.name for span in self.all]

    def named(self, name: str) -> Span:
        (found,) = [span for span in self.all if span.name == name]
        return found

    def samples(self, trace_id: str) -> bool:
        return not self.quiet

    def record(self, span: Span) -> None:
        self.all.append(span)

    def serve_users(self) -> None: ...

    async def close(self) -> None: ...
