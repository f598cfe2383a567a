"""Gates of the fleet: no fitting worker, no free worker, other executions first."""

from horae.engine.base.presence import SILENT
from horae.engine.definitions.directory import NEEDS_KEY
from horae.engine.executions.probes.case import Case, ExecutionCase, Sources
from horae.model.admission.placement.placement import fits, missing_from, read_needs, without_preferences
from horae.model.admission.policy import FairPolicy
from horae.model.base.ids import index_of, parcel_of
from horae.model.executions.gates import Blocker, closed
from horae.model.executions.hint import WORKFLOW, Offer, why_queued
from horae.model.fleet.server import KEYLESS
from horae.model.fleet.session import Session
from horae.model.fleet.suspects import SessionSuspects, is_suspect
from horae.store.executions.reads import explain_reads
from horae.store.fleet import sessions

MOST_NAMED = 10  # workers that a blocker names


async def no_worker(sources: Sources, case: Case) -> list[Blocker]:
    if case.fitting() or WORKFLOW in case.needs:
        return []
    offers = [Offer(frozenset(session.queues), session.capabilities) for session in case.sessions]
    message, _, remedy = (why_queued(case.queue_name, case.needs, offers) or "").partition("; ")
    lacking = missing_from(
        read_needs(without_preferences(case.needs)), [session.capabilities for session in case.serving()]
    )
    return [
        closed(
            "no-worker",
            message.rstrip(".") + ".",
            remedy[:1].upper() + remedy[1:] if remedy else None,
            queue=case.queue_name,
            needs=sorted(case.needs),
            lacking=lacking,
            workers=len(case.sessions),
            serving=len(case.serving()),
        )
    ]


async def no_key(sources: Sources, case: Case) -> list[Blocker]:
    """Check whether servers lack the master key that the execution needs. Only servers with the key grant it."""
    if not NEEDS_KEY & case.needs or not case.fitting():
        return []
    servers = await sources.store.read(lambda: sessions.servers(case.now - SILENT))
    gateways = [server for server in servers if "gateway" in server.roles]
    lacking = [server.place for server in gateways if KEYLESS in server.roles]
    if sources.directory.keyless and not lacking:
        lacking = ["this server"]
    if not lacking:
        return []
    message = (
        f"It needs the master key, which is missing at {', '.join(lacking[:MOST_NAMED])}."
        " Servers without the key do not give it to workers."
    )
    remedy = "Give every server the same key: HORAE_MASTER_KEY, or HORAE_MASTER_KEY_FILE."
    return [closed("no-key", message, remedy, servers=lacking[:MOST_NAMED], of=max(len(gateways), len(lacking)))]


async def suspect(sources: Sources, case: ExecutionCase) -> list[Blocker]:
    """Check whether each fitting session holds as many suspects as it may."""
    fitting = case.fitting()
    losses = case.execution.losses
    if not case.is_queued or not is_suspect(losses) or not fitting:
        return []
    held = await sources.store.read(lambda: explain_reads.suspects_in([session.id for session in fitting]))
    for session in fitting:
        count, worst = held.get(session.id, (0, 0))
        if SessionSuspects(slots=session.concurrency, held=count, losses=worst).room(losses):
            return []
    message = (
        f"It was lost with its worker {losses} times, and each worker that fits runs as many such executions as it may."
    )
    return [closed("suspect", message, losses=losses, workers=len(fitting))]


async def busy(sources: Sources, case: ExecutionCase) -> list[Blocker]:
    fitting = case.fitting()
    if not case.is_queued or not fitting or any(session.running < session.concurrency for session in fitting):
        return []
    slots = sum(session.concurrency for session in fitting)
    workers = "The one worker that fits has" if len(fitting) == 1 else f"All {len(fitting)} workers that fit have"
    message = f"{workers} no slot free; {slots} {'is' if slots == 1 else 'are'} in use."
    shown = [_shown(session) for session in fitting[:MOST_NAMED]]
    return [closed("busy", message, slots=slots, workers=shown)]


def _shown(session: Session) -> dict[str, object]:
    return {"worker": session.worker, "running": session.running, "slots": session.concurrency}


async def ahead(sources: Sources, case: ExecutionCase) -> list[Blocker]:
    found = await ahead_of(sources, case)
    if not found.count:
        return []
    count = f"{found.count}" if found.whole else f"At least {found.count}"
    noun = "execution is" if found.count == 1 else "executions are"
    message = f'{count} {noun} ahead of it in the queue "{case.queue_name}".'
    return [closed("ahead", message, ahead=found.count, exact=found.whole, queue=case.queue_name)]


async def ahead_of(sources: Sources, case: ExecutionCase) -> explain_reads.QueueAhead:
    """Count the executions ahead of this one by rank, in lanes of its queue or share that the same workers serve."""
    rank = case.place.rank
    if rank is None:
        return explain_reads.QueueAhead({})
    execution, fitting = case.execution.id, case.fitting()
    known = sources.directory.lanes
    own_lane, queue = known.get(case.place.lane), sources.directory.queues.get(case.queue)
    share = (
        own_lane.share if own_lane is not None and queue is not None and isinstance(queue.policy, FairPolicy) else None
    )
    lanes = [
        lane.id
        for lane in known.values()
        if lane.queue == case.queue
        and share in (None, lane.share)
        and any(fits(sources.directory.lane_needs.terms[lane.id], session.capabilities) for session in fitting)
    ]
    wanted = {case.place.lane, *lanes}
    found = await sources.store.read(
        lambda: explain_reads.queue_ahead(wanted, rank, parcel_of(execution), case.place.lo)
    )
    earlier_items = index_of(execution) - case.place.lo  # earlier items of its own slice
    if earlier_items:
        found.jobs[case.job.id] = found.jobs.get(case.job.id, 0) + earlier_items
    return found
