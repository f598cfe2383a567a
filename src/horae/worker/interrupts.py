"""Requests of servers to stop single items: an unstarted item is ended, a running item is interrupted by its runner."""

from typing import Literal

from msgspec import Struct

from horae.model.fleet.protocol import Request
from horae.worker.code.failure import TIMED_OUT
from horae.worker.exchange.outbox import Outbox
from horae.worker.holding import CANCELLED, RELEASED, Chunk, ItemOutcome, StartedItem
from horae.worker.stock import Stock

InterruptKind = Literal["cancel", "timeout", "heartbeat", "total", "preempt", "drain", "lost"]


class Interrupt(Struct, frozen=True, eq=False):
    """An interruption that a runner must apply to an item that a chunk runs."""

    chunk: Chunk
    begun: StartedItem
    kind: InterruptKind


_UNSTARTED: dict[str, ItemOutcome] = {
    "cancel": CANCELLED,
    "preempt": RELEASED,
    "timeout": TIMED_OUT["start"],
    "startTimeout": TIMED_OUT["start"],
    "heartbeatTimeout": TIMED_OUT["start"],
    "totalTimeout": TIMED_OUT["total"],
}
# By the kind of the request. A start timeout is missing, because these items have started.
_BEGUN: dict[str, InterruptKind] = {
    "cancel": "cancel",
    "preempt": "preempt",
    "timeout": "timeout",
    "heartbeatTimeout": "heartbeat",
    "totalTimeout": "total",
}


def apply_request(request: Request, stock: Stock, outbox: Outbox) -> Interrupt | None:
    """Apply a request to an item, unless it was applied before: end the item if it is unstarted.

    Return the interruption that the runner must apply if the item runs. A request whose item is not found has no
    effect; the server repeats it.
    """
    held_slice = stock.slice_of(request.parcel, request.item, request.attempt)
    mark = (request.item, request.kind)
    if held_slice is None or mark in held_slice.applied_requests:
        return None
    if stock.withdraw((held_slice, request.item)):
        held_slice.applied_requests.add(mark)
        outbox.end([(held_slice, request.item, None, None, _UNSTARTED[request.kind])])
        return None
    kind = _BEGUN.get(request.kind)
    for chunk in held_slice.backlog.chunks:
        begun = chunk.running()
        if begun is not None and begun[0] is held_slice and begun[1] == request.item:
            held_slice.applied_requests.add(mark)
            return None if kind is None else Interrupt(chunk, begun, kind)
    return None
