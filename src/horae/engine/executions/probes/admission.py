"""Gates of admission: limits and sequences, circuits that failures opened, and pauses and holds by users."""

import shlex
from collections.abc import Sequence
from typing import Any

from horae.engine.executions.probes.case import Case, ExecutionCase, Sources
from horae.model.admission import limits
from horae.model.admission.circuit import CircuitStatus, why_blocked
from horae.model.admission.hold import Hold, why_held
from horae.model.admission.keys import keys_of
from horae.model.admission.limits import Limit, is_fan, limit_of, value_in, with_own
from horae.model.base.instant import format_instant
from horae.model.executions.gates import Blocker, closed
from horae.store.admission import circuit_reads, limit_reads
from horae.store.triggers import streaks

MOST_NAMED = 10  # executions that a blocker names


async def limit(sources: Sources, case: ExecutionCase) -> list[Blocker]:
    """Return the executions that hold the key for which this one waits."""
    execution, key = case.execution, case.place.gate
    if execution.reason != "limit":
        return []
    soon = closed("limit", "Its limits are checked in a moment.", until=case.now, holders=[])
    if key is None or execution.wake_at is not None:
        return [soon]
    holders = await sources.store.read(lambda: limit_reads.holders_of(key, MOST_NAMED))
    allowed, described = _described(case, key)
    if not holders or allowed.concurrency is None:  # room became free, or an edit removed the limit
        return [soon]
    named = ", ".join(str(holder) for holder in holders)
    many = "1 execution" if allowed.concurrency == 1 else f"{allowed.concurrency} executions"
    return [
        closed(
            "limit",
            f"At most {many} of {described} may be queued or running at once; the limit is used up by {named}.",
            _remedy(holders),
            key=value_in(key),
            concurrency=allowed.concurrency,
            holders=[str(holder) for holder in holders],
        )
    ]


async def sequence(sources: Sources, case: ExecutionCase) -> list[Blocker]:
    """Return the execution that has the turn in the sequence, also if this one waits for another key."""
    waits = case.execution.reason == "sequence"
    key = case.place.gate if waits else keys_of(case.place.keys).sequence
    if case.execution.reason not in ("sequence", "limit") or key is None:
        return []
    head = await sources.store.read(lambda: limit_reads.head_of(key))
    if head is None or head == case.execution.id:
        soon = closed("sequence", "Its turn comes in a moment.", until=case.now, key=value_in(key), holders=[])
        return [soon] if waits else []
    return [
        closed(
            "sequence",
            f'Execution {head} has the turn in the sequence "{value_in(key)}" and has not ended.',
            f"That execution ends, then the others before this one. `horae executions cancel {head}` ends that one.",
            key=value_in(key),
            holders=[str(head)],
        )
    ]


async def rate(_: Sources, case: ExecutionCase) -> list[Blocker]:
    execution, gate = case.execution, case.place.gate
    if execution.reason != "rate" or gate is None or execution.wake_at is None:
        return []
    key = gate.removeprefix("rate:")
    allowed, described = _described(case, key)
    when = format_instant(execution.wake_at)
    message = f"Its limits are checked at {when}."
    if allowed.rate is not None:  # an edit may have removed the rate
        message = f"Executions of {described} start at a rate of {allowed.rate}; this one may start at {when}."
    rate = None if allowed.rate is None else str(allowed.rate)
    return [closed("rate", message, until=execution.wake_at, key=value_in(key), rate=rate)]


async def queue_limit(sources: Sources, case: ExecutionCase) -> list[Blocker]:
    name = f'the queue "{case.queue_name}"'
    return await _coarse(sources, case, limits.queue_limit(case.queue), "queue-limit", name, case.queue_name)


async def namespace_limit(sources: Sources, case: ExecutionCase) -> list[Blocker]:
    name = limits.namespace_limit(case.namespace)
    return await _coarse(sources, case, name, "namespace-limit", "the namespace", None)


async def _coarse(
    sources: Sources, case: ExecutionCase, name: str, gate: str, subject: str, queue: str | None
) -> list[Blocker]:
    """Check whether a limit of a queue or a namespace has no room now for a queued execution."""
    if not case.is_queued or name not in sources.directory.full.limits:
        return []
    limit, use, pace = await sources.store.read(lambda: limit_reads.use_of(name))
    rate = limit.rate
    details: dict[str, Any] = {
        "queue": queue,
        "concurrency": limit.most if limit.most < limits.UNLIMITED else None,
        "running": use,
    }
    if use >= limit.most:
        remedy = "One of them ends, or the limit is raised."
        message = f"{use} executions of {subject} run, and at most {limit.most} may."
        return [closed(gate, message, remedy, **details)]
    if rate is not None and not rate.room(pace, case.now):
        until = rate.opens_at(pace)
        message = f"Executions of {subject} start at a rate of {rate}; the next may start at {format_instant(until)}."
        return [closed(gate, message, until=until, rate=str(rate), **details)]
    return []


def _described(case: ExecutionCase, key: str) -> tuple[Limit, str]:
    """Return the limit of a key, and the key in the words of the job's definition."""
    spec = case.job.spec
    own = with_own(spec.limits, spec.concurrency, spec.rate)
    found = limit_of(key, own)
    if is_fan(key):
        return found, f'the step "{value_in(key)}"'
    template = next((own_limit.key for own_limit in own if own_limit == found), "its key")
    return found, f'{template} = "{value_in(key)}"' if template else f'the job "{spec.name}"'


def _remedy(holders: Sequence[object]) -> str:
    first = f" `horae executions cancel {holders[0]}` ends one." if holders else ""
    return f"One of them ends, or the limit is raised.{first}"


async def circuit(sources: Sources, case: ExecutionCase) -> list[Blocker]:
    key = keys_of(case.place.keys).circuit
    if key is None:
        return []
    status = await sources.store.read(lambda: circuit_reads.status_of((case.job.id, key)))
    if case.execution.id in status.probes and case.execution.reason != "circuit":
        return []
    if status.blocks_starts:
        return [_shut(status, case)]
    if case.execution.reason != "circuit":
        return []
    message = f'The circuit of "{case.job.name}" is closed again, so the execution goes on in a moment.'
    return [closed("circuit", message, until=case.now, job=case.job.name, key=key or None, state="closed")]


async def circuit_of_job(sources: Sources, case: Case) -> list[Blocker]:
    """Check a job's own circuit. Open circuits of single keys do not stop the whole job."""
    if case.job.spec.circuit is None or case.job.spec.circuit.key is not None:
        return []
    status = await sources.store.read(lambda: circuit_reads.status_of((case.job.id, "")))
    return [_shut(status, case)] if status.blocks_starts else []


def _shut(status: CircuitStatus, case: Case) -> Blocker:
    keyed = case.job.spec.circuit is not None and case.job.spec.circuit.key is not None
    key = f" --key {shlex.quote(status.key)}" if keyed else ""
    remedy = f"Probes succeed, or an operator resets it: `horae circuits reset {case.job.name}{key}`."
    return closed(
        "circuit",
        why_blocked(status, case.job.name),
        remedy,
        until=status.until,
        job=case.job.name,
        key=status.key or None,
        state=status.state,
        forced=status.forced,
        cause=status.cause,
        by=status.by or None,
    )


async def paused(sources: Sources, case: Case) -> list[Blocker]:
    if case.job.state != "paused":
        return []
    name = case.job.name
    pause = (await sources.store.read(lambda: streaks.pauses([case.job.id]))).get(case.job.id)
    reason = f": {pause.reason.rstrip('.')}." if pause is not None and pause.reason else "."
    remedy = f"Resume it with `horae jobs resume {name}`."
    return [closed("paused", f'The job "{name}" is paused{reason}', remedy, job=name)]


async def queue_paused(sources: Sources, case: Case) -> list[Blocker]:
    hold = sources.holds.hold_of_queue(case.namespace, case.queue)
    if hold is None or not hold.is_pause:
        return []
    return [_blocked(hold, case, "queue-paused")]


async def held(sources: Sources, case: Case) -> list[Blocker]:
    hold = sources.holds.hold_of_queue(case.namespace, case.queue)
    if hold is None or hold.is_pause:
        return []
    return [_blocked(hold, case, "held", calendar=hold.calendar)]


def _blocked(hold: Hold, case: Case, gate: str, **more: object) -> Blocker:
    """Return the blocker of a held queue, with the event that ends the hold."""
    message, _, remedy = why_held(hold, case.queue_name).rpartition("; ")
    return closed(
        gate,
        f"{message}.",
        remedy,
        until=hold.until_at,
        queue=None if hold.queue is None else case.queue_name,
        reason=hold.reason,
        holdId=str(hold.id),
        **more,
    )
