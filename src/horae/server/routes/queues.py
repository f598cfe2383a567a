"""Queues: where executions stand in line."""

from horae.model.hold_view import HoldView
from horae.model.queue import Queue
from horae.model.view import Page
from horae.server.call import Call
from horae.server.reply import Reply, ok
from horae.server.route import API, get
from horae.server.views import LaneView, QueueView
from horae.store.moves.depths import depths
from horae.store.moves.holds import running
from horae.store.moves.lanes import Directory


@get(f"{API}/queues", "queues.list", Page[QueueView])
async def list_queues(call: Call) -> Reply:
    """List queues with their lanes, how much is queued and runs in each, and what holds them now."""
    directory = await call.node.store.directory()
    queued = await call.node.store.read(lambda: depths(call.namespace))
    runs = await call.node.store.read(lambda: running(call.namespace))
    holds = [hold for hold in await call.node.holds.list(call.namespace) if hold.state == "open"]
    own = (queue for queue in directory.queues if queue.namespace == call.namespace)
    return ok(Page(items=[_view(queue, directory, queued, runs, holds) for queue in own]))


def _view(
    queue: Queue, directory: Directory, queued: dict[int, int], runs: dict[int, int], holds: list[HoldView]
) -> QueueView:
    lanes = [
        LaneView(needs=sorted(lane.needs), share=lane.share, queued=queued.get(lane.id, 0))
        for lane in directory.lanes
        if lane.queue == queue.id
    ]
    total = sum(lane.queued for lane in lanes)
    held = [hold for hold in holds if hold.queue in (None, queue.name)]
    return QueueView(
        name=queue.name, policy=queue.policy.kind, state="held" if held else queue.state, queued=total,
        running=runs.get(queue.id, 0), lanes=lanes, holds=held,
    )  # fmt: skip
