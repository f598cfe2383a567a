"""Reports of ended attempts to the tracer, and to the log in verbose mode."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import structlog

from horae.model.base.trace import trace_id_of
from horae.worker.code.tracing import AttemptTracer
from horae.worker.holding import EndedItem, ItemOutcome, JobBacklog

if TYPE_CHECKING:
    from horae.worker.session import WorkerSession

OnEnded = Callable[["WorkerSession", JobBacklog, Sequence[EndedItem]], object]
log = structlog.get_logger("horae.worker")


def attempt_reporter(tracing: AttemptTracer | None, *, verbose: bool) -> OnEnded | None:
    """Return the function that a session calls with ended attempts.

    Return None if there is neither a tracer nor verbose logging, so that sessions save the calls.
    """
    if tracing is None and not verbose:
        return None

    def report(session: "WorkerSession", backlog: JobBacklog, endings: Sequence[EndedItem]) -> None:
        job = backlog.spec.name if backlog.spec is not None else ""
        if tracing is not None:
            tracing.ended(session, job, endings)
        if verbose:
            for ending in endings:
                log.debug("attempt ended", job=job, **_about(ending))

    return report


def _about(ending: EndedItem) -> dict[str, Any]:
    held_slice, index, started, ended, outcome = ending
    fields: dict[str, Any] = {
        "execution": str(held_slice.execution(index)),
        "attempt": held_slice.grant.attempt,
        "outcome": outcome.outcome if isinstance(outcome, ItemOutcome) else "success",
    }
    if started is not None and ended is not None:
        fields["seconds"] = round(ended - started, 6)
    trace = trace_id_of(held_slice.extra(index).trace) if held_slice.traced else None
    return fields if trace is None else fields | {"trace": trace}
