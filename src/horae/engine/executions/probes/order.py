"""Gates of order: other executions come first, by fair shares, by workers' choice of queues, or by a reservation."""

from horae.engine.executions.probes.case import ExecutionCase, Sources
from horae.model.admission.claim_plan import LaneState, QueuePreferences
from horae.model.admission.policy import FairPolicy
from horae.model.executions.gates import Blocker, closed

MOST_NAMED = 10  # shares or workers that a blocker names


async def share(sources: Sources, case: ExecutionCase) -> list[Blocker]:
    """Return other shares of a fair queue that have work and come first."""
    views = sources.directory.lane_states() if case.is_queued else []
    own = next((view for view in views if view.lane == case.place.lane), None)
    if own is None or own.share is None:
        return []
    before = [
        view for view in views if view.queue == own.queue and view.share != own.share and _turn(view) < _turn(own)
    ]
    names = list(dict.fromkeys(view.share or "" for view in sorted(before, key=_turn)))
    if not names:
        return []
    named = " and ".join(f'"{name}"' for name in names[:3]) + (" and others" if len(names) > 3 else "")
    message = f'The queue "{case.queue_name}" serves {named} before the share "{own.share}".'
    return [closed("share", message, share=own.share, before=names[:MOST_NAMED], queue=case.queue_name)]


def share_factor(sources: Sources, case: ExecutionCase) -> float:
    """Return the factor by which other active shares of a fair queue slow this share down; 1 for other queues."""
    views = sources.directory.lane_states() if case.is_queued else []
    own = next((view for view in views if view.lane == case.place.lane), None)
    if own is None or own.share is None:
        return 1.0
    policy = sources.directory.queues[own.queue].policy
    if not isinstance(policy, FairPolicy):
        return 1.0
    busy = {view.share or "" for view in views if view.queue == own.queue}
    return sum(map(policy.weight, busy)) / policy.weight(own.share)


def _turn(view: LaneState) -> tuple[bool, float, int]:
    """Return the sort key of a share: first shares with an unfilled reserve, then by received service, then by the time
    since the last grant.
    """
    return view.owed <= 0, view.virtual, view.last_grant


async def other_queues(sources: Sources, case: ExecutionCase) -> list[Blocker]:
    """Return queues that come first at each fitting worker, by the worker's order of queues or by its weights."""
    views = sources.directory.lane_states() if case.is_queued else []
    first: set[int] = set()
    for session in case.fitting():
        preferences, may = sources.directory.preferences.for_session(session), sources.directory.lanes_for(session)
        others = {view.queue for view in views if view.lane in may and view.queue != case.queue}
        before = {
            queue for queue in others if preferences is not None and _comes_before(preferences, queue, case.queue)
        }
        if not before:
            return []
        first |= before
    if not first:
        return []
    names = sorted(sources.directory.queues[queue].name for queue in first)
    named = " and ".join(f'"{name}"' for name in names)
    message = f"The workers that fit take from {named} before this queue."
    return [closed("other-queues", message, queues=names, queue=case.queue_name)]


def _comes_before(preferences: QueuePreferences, other: int, own: int) -> bool:
    if preferences.strict:
        return preferences.place(other) < preferences.place(own)
    shares = preferences.virtual_times
    return (shares.virtual(other), shares.last_grant(other), preferences.place(other)) < (
        shares.virtual(own), shares.last_grant(own), preferences.place(own),
    )  # fmt: skip


async def reserved(sources: Sources, case: ExecutionCase) -> list[Blocker]:
    """Return the fitting workers if all of them are reserved for large executions in other lanes."""
    fitting, reserved_lanes = case.fitting(), sources.directory.lane_needs.reserved
    if not case.is_queued or not fitting:
        return []
    if any(reserved_lanes.get(session.id, case.place.lane) == case.place.lane for session in fitting):
        return []
    workers = [session.worker for session in fitting][:MOST_NAMED]
    message = "Each worker that fits is reserved for larger executions, which were passed over for too long."
    return [closed("reserved", message, workers=workers)]
