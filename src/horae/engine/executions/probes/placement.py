"""Gates of placement: a preferred worker, workers with fewer executions of the job, no worker with enough room."""

from collections.abc import Sequence

from horae.engine.executions.probes.case import ExecutionCase, Sources
from horae.engine.fleet.workers import used_resources
from horae.model.admission.placement.labels import SLOTS
from horae.model.admission.placement.placement import Requirements, amounts, capacity_of, fits
from horae.model.admission.placement.spread import PATIENCE
from horae.model.base.instant import format_instant
from horae.model.executions.gates import Blocker, closed
from horae.model.fleet.session import Session
from horae.store.fleet.sessions import held_by_lane

MOST_NAMED = 10  # workers that a blocker names


async def preferred(sources: Sources, case: ExecutionCase) -> list[Blocker]:
    terms, since = _terms(sources, case), case.execution.queued_at
    if terms is None or not terms.is_temporary or since is None:
        return []
    if not terms.prefers:
        return [closed("preferred", "The worker that last ran an execution with its key is being looked up.")]
    labels = [preference.label for preference in terms.prefers]
    workers = [session.worker for session in case.serving() if fits(terms, session.capabilities)]
    until = since + terms.patience
    message = f"It waits for a worker with {' and '.join(labels)}, until {format_instant(until)} at the latest."
    return [closed("preferred", message, until=until, labels=labels, workers=workers[:MOST_NAMED])]


async def spread(sources: Sources, case: ExecutionCase) -> list[Blocker]:
    terms, since = _terms(sources, case), case.execution.queued_at
    if terms is None or not terms.spread or since is None or since + PATIENCE <= case.now or not case.fitting():
        return []
    message = "It is left to workers that have fewer executions of its job."
    return [closed("spread", message, until=since + PATIENCE)]


async def room(sources: Sources, case: ExecutionCase) -> list[Blocker]:
    terms, fitting = _terms(sources, case), case.fitting()
    if terms is None or not terms.cost or not fitting:
        return []
    held = await sources.store.read(lambda: held_by_lane(session.id for session in fitting))
    taken = {
        session.id: used_resources(session.concurrency, held[session.id], sources.directory.lane_needs.costs)
        for session in fitting
    }
    if any(_has_room(terms, session, taken[session.id]) for session in fitting):
        return []
    reserved_worker = next(
        (
            session.worker
            for session in fitting
            if sources.directory.lane_needs.reserved.get(session.id) == case.place.lane
        ),
        None,
    )
    message = f"No worker that fits has {' and '.join(amounts(terms.cost))} free at once."
    if reserved_worker is not None:
        message += f" {reserved_worker} takes nothing else until it has."
    shown = [_shown(session, taken[session.id]) for session in fitting[:MOST_NAMED]]
    return [closed("room", message, takes=_takes(terms), workers=shown, reserved=reserved_worker)]


def _terms(sources: Sources, case: ExecutionCase) -> Requirements | None:
    """Return the requirements of the execution's lane; None when it is not queued."""
    return sources.directory.lane_needs.terms.get(case.place.lane) if case.is_queued else None


def _has_room(terms: Requirements, session: Session, taken: dict[str, int]) -> bool:
    left = {name: has - taken.get(name, 0) for name, has in capacity_of(session.capabilities).items()}
    return terms.cost.times(left[SLOTS], left) > 0


def _takes(terms: Requirements) -> dict[str, int]:
    return {SLOTS: terms.cost.slots, **dict(terms.cost.resources)}


def _shown(session: Session, taken: dict[str, int]) -> dict[str, object]:
    has: Sequence[tuple[str, int]] = sorted(capacity_of(session.capabilities).items())
    return {"worker": session.worker, "used": {name: taken.get(name, 0) for name, _ in has}, "has": dict(has)}
