"""Gates that users close: a paused job, a paused queue, a held queue."""

from horae.engine.executions.probes.case import Case, Sources
from horae.model.admission.hold import Hold, why_held
from horae.model.executions.gates import Blocker, closed
from horae.store.triggers import streaks


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
