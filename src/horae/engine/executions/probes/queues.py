"""Gates that people close: a job or a queue that is paused, a queue that is held."""

from horae.engine.executions.probes.case import Case, Sources
from horae.model.admission.hold import Hold, why_held
from horae.model.executions.gates import Blocker, closed
from horae.store.triggers import streaks


async def paused(sources: Sources, case: Case) -> list[Blocker]:
    if case.job.state != "paused":
        return []
    name = case.job.name
    because = (await sources.store.read(lambda: streaks.pauses([case.job.id]))).get(case.job.id)
    why = f": {because.reason.rstrip('.')}." if because is not None and because.reason else "."
    remedy = f"Resume it with `horae jobs resume {name}`."
    return [closed("paused", f'The job "{name}" is paused{why}', remedy, job=name)]


async def queue_paused(sources: Sources, case: Case) -> list[Blocker]:
    hold = sources.holds.hold_of_queue(case.namespace, case.queue)
    if hold is None or not hold.is_pause:
        return []
    return [_kept(hold, case, "queue-paused")]


async def held(sources: Sources, case: Case) -> list[Blocker]:
    hold = sources.holds.hold_of_queue(case.namespace, case.queue)
    if hold is None or hold.is_pause:
        return []
    return [_kept(hold, case, "held", calendar=hold.calendar)]


def _kept(hold: Hold, case: Case, gate: str, **more: object) -> Blocker:
    """What keeps a queue from starting anything, with what ends it."""
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
