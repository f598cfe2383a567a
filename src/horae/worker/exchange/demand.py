"""Computes the work that an exchange requests: for idle slots, and items of short jobs to hold ready."""

from collections.abc import Sequence
from uuid import UUID

from horae.model.fleet.protocol import Exchange
from horae.worker.holding import JobBacklog
from horae.worker.pace import MAX_AHEAD
from horae.worker.stock import Stock

FETCH_PAUSE = 0.5  # seconds without a request for an idle slot after which fetching ahead pauses


def free_slots(stock: Stock, unanswered: Sequence[Exchange]) -> int:
    """Count the slots to request work for.

    These are the idle slots, less the slots that ready items need and the free slots that an unanswered exchange
    reports.
    """
    ready = sum(_slots_for(stock, backlog) for backlog in stock.backlogs.values())
    return max(0, stock.slots - stock.busy - ready - sum(exchange.free for exchange in unanswered))


def free_room(stock: Stock, unanswered: Sequence[Exchange]) -> dict[str, int]:
    """Return the free amount of each other resource, such as memory, computed in the same way as `free_slots`."""
    room = stock.room
    for backlog in stock.backlogs.values():
        if backlog.cost and backlog.ready:
            room = backlog.cost.left_of(room, len(backlog.ready))
    return {name: max(0, room[name] - sum(exchange.room.get(name, 0) for exchange in unanswered)) for name in room}


def fetch_ahead(stock: Stock, unanswered: Sequence[Exchange]) -> dict[UUID, int]:
    """Return the number of items of each short job to request in advance, by job.

    Together with the items that are held or requested already, they give the slots that short jobs can use about 100 ms
    of work. A job that lacks less than an eighth of this is left out.
    """
    held = _held(stock, unanswered)
    short = sum(len(backlog.chunks) for backlog in stock.backlogs.values() if _is_short(stock, backlog))
    slots = max(0, stock.slots - stock.busy + short)
    room = MAX_AHEAD
    wishes: dict[UUID, int] = {}
    for job, count in held.items():
        target = min(room, stock.pace.prefetch_count(job, slots))
        wish = target - count
        if wish > 0 and wish >= target // 8:
            wishes[job] = wish
            room -= target
    return wishes


def _held(stock: Stock, unanswered: Sequence[Exchange]) -> dict[UUID, int]:
    """Count the unstarted items that are held or requested, for each short job."""
    held: dict[UUID, int] = {}
    for backlog in stock.backlogs.values():
        if _is_short(stock, backlog):
            held[backlog.job] = held.get(backlog.job, 0) + len(backlog)
    for exchange in unanswered:
        for job, count in exchange.prefetch.items():
            if job in held:
                held[job] += count
    return held


def _is_short(stock: Stock, backlog: JobBacklog) -> bool:
    return backlog.may_fetch_ahead and stock.pace.prefetch_count(backlog.job, 1) > 0


def _slots_for(stock: Stock, backlog: JobBacklog) -> int:
    if not backlog.ready:
        return 0
    if backlog.cost:
        return len(backlog.ready) * backlog.cost.slots
    return stock.pace.slots_needed(backlog.job, len(backlog.ready)) if backlog.may_fetch_ahead else len(backlog.ready)
