"""Queues: where executions stand in line."""

from horae.model.view import Page
from horae.server.call import Call
from horae.server.reply import Reply, ok
from horae.server.route import API, get
from horae.server.views import LaneView, QueueView
from horae.store.moves.depths import depths
from horae.store.moves.lanes import Directory, Queue


@get(f"{API}/queues", "queues.list", Page[QueueView])
async def list_queues(call: Call) -> Reply:
    """List queues with their lanes and how much is queued in each."""
    directory = await call.node.store.directory()
    queued = await call.node.store.read(lambda: depths(call.namespace))
    own = (queue for queue in directory.queues if queue.namespace == call.namespace)
    return ok(Page(items=[_view(queue, directory, queued) for queue in own]))


def _view(queue: Queue, directory: Directory, queued: dict[int, int]) -> QueueView:
    lanes = [
        LaneView(needs=sorted(lane.needs), share=lane.share, queued=queued.get(lane.id, 0))
        for lane in directory.lanes
        if lane.queue == queue.id
    ]
    total = sum(lane.queued for lane in lanes)
    return QueueView(name=queue.name, policy=queue.policy.kind, state=queue.state, queued=total, lanes=lanes)
