"""Gates that people close: a job or a queue that is paused, a queue that is held."""

from horae.engine.probes.case import Case, Sources
from horae.model.gates import Blocker, closed
from horae.model.hold import why_held


async def paused(sources: Sources, case: Case) -> list[Blocker]:
    if case.job.state != "paused":
        return []
    name = case.job.name
    return [closed("paused", f'The job "{name}" is paused.', f"Resume it with `horae jobs resume {name}`.", job=name)]


async def queue_paused(sources: Sources, case: Case) -> list[Blocker]:
    queue = sources.directory.queues.get(case.queue)
    if queue is None or queue.state == "active":
        return []
    remedy = f"Resume it with `horae queues resume {queue.name}`."
    return [closed("queue-paused", f'The queue "{queue.name}" is {queue.state}.', remedy, queue=queue.name)]


async def held(sources: Sources, case: Case) -> list[Blocker]:
    hold = sources.holds.of_queue(case.namespace, case.queue)
    if hold is None:
        return []
    message, _, remedy = why_held(hold, case.queue_name).rpartition("; ")
    return [
        closed(
            "held",
            f"{message}.",
            remedy,
            until=hold.until_at,
            queue=None if hold.queue is None else case.queue_name,
            calendar=hold.calendar,
            reason=hold.reason,
            holdId=str(hold.id),
        )
    ]
