"""Gates that time opens: a delay, the pause before a retry, a durable sleep."""

from horae.engine.executions.probes import relations
from horae.engine.executions.probes.case import ExecutionCase, Sources
from horae.model.base.ids import index_of, parcel_of
from horae.model.base.instant import format_instant
from horae.model.executions.gates import Blocker, closed
from horae.store.executions.durable import awaits

SLEEPS = {"sleep": "It sleeps", "signal": "It waits for a signal"}


async def delay(sources: Sources, case: ExecutionCase) -> list[Blocker]:
    execution = case.execution
    if execution.reason != "delay" or execution.wake_at is None:
        return []
    message = f"It is due at {format_instant(execution.wake_at)}."
    return [closed("delay", message, until=execution.wake_at)]


async def retry(sources: Sources, case: ExecutionCase) -> list[Blocker]:
    execution = case.execution
    if execution.reason != "retry" or execution.wake_at is None:
        return []
    error = execution.error
    failed = f"It failed {_times(execution.failures)}" + (f", last with {error.type}" if error else "")
    return [
        closed(
            "retry",
            f"{failed}; it is tried again at {format_instant(execution.wake_at)}.",
            until=execution.wake_at,
            failures=execution.failures,
            retries=case.job.spec.retry.retries,
            error=error.type if error else None,
        )
    ]


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


async def sleep(sources: Sources, case: ExecutionCase) -> list[Blocker]:
    execution = case.execution
    if execution.reason == "children" and execution.session is None:
        return await relations.children(sources, case)
    if execution.reason not in SLEEPS or execution.session is not None:
        return []
    until = "" if execution.wake_at is None else f" until {format_instant(execution.wake_at)}"
    signals = await _signals(sources, case) if execution.reason == "signal" else []
    names = f" {' or '.join(map(repr, signals))}" if signals else ""
    message = f"{SLEEPS[execution.reason]}{names}{until}; it has begun, and occupies no worker meanwhile."
    return [closed("sleep", message, until=execution.wake_at, kind=execution.reason, signals=signals or None)]


async def _signals(sources: Sources, case: ExecutionCase) -> list[str]:
    """Return the names of the signals that the execution waits for."""
    place = parcel_of(case.execution.id), index_of(case.execution.id)
    waits = await sources.store.read(lambda: awaits.of_item(*place))
    return list(dict.fromkeys(name for name, _ in waits))


async def window(sources: Sources, case: ExecutionCase) -> list[Blocker]:
    execution = case.execution
    if execution.reason not in ("debounce", "batch") or execution.wake_at is None:
        return []
    at = format_instant(execution.wake_at)
    if execution.reason == "batch":
        batch = case.job.spec.batch
        full = f", or as soon as it has {batch.size} items" if batch is not None else ""
        return [closed("window", f"It collects submissions until {at}{full}.", until=execution.wake_at, kind="batch")]
    message = f"It begins at {at}, unless another submission puts it off."
    return [closed("window", message, until=execution.wake_at, kind="debounce")]
