"""Views of queues with their depth, running executions and holds."""

from collections.abc import Callable

from horae.engine.admission.holds import QueueHolds
from horae.engine.definitions.directory import LocalDirectory
from horae.model.admission.queue import QUEUE, Queue, show_queue
from horae.model.admission.queue_view import LaneView, QueueView
from horae.store.admission.holds import running_by_queue
from horae.store.contract import Store
from horae.store.executions.reads.depths import depths

MOST_LANES = 100  # lanes in a queue's view: the deepest ones


class QueueViews:
    """Builds views of queues."""

    def __init__(self, store: Store, directory: LocalDirectory, holds: QueueHolds) -> None:
        self._store, self._directory, self._holds = store, directory, holds

    async def list(self, namespace: int) -> list[QueueView]:
        """Return all queues of a namespace as they are in the store, not as this server's directory has them."""
        directory = await self._store.directory()
        view = await self._viewer(namespace)
        return [view(queue) for queue in directory.queues if queue.namespace == namespace]

    async def show(self, queue: Queue) -> QueueView:
        """Return one queue."""
        return (await self._viewer(queue.namespace))(queue)

    async def _viewer(self, namespace: int) -> Callable[[Queue], QueueView]:
        """Return a function that builds views, with counts read once for the whole namespace."""
        queued = await self._store.read(lambda: depths(namespace))
        runs = await self._store.read(lambda: running_by_queue(namespace))
        holds = [hold for hold in await self._holds.list(namespace) if hold.state == "open"]
        lanes = [lane for lane in self._directory.lanes.values() if lane.namespace == namespace]

        def view(queue: Queue) -> QueueView:
            own = [
                LaneView(needs=sorted(lane.needs), share=lane.share, queued=queued.get(lane.id, 0))
                for lane in lanes
                if lane.queue == queue.id
            ]
            held = [hold for hold in holds if hold.queue in (None, queue.name)]
            paused = any(hold.paused for hold in held)
            return QueueView(
                name=queue.name,
                **QUEUE.keywords(show_queue(queue.spec, queue.is_default)),
                state="paused" if paused else "held" if held else queue.state,
                queued=sum(lane.queued for lane in own),
                running=runs.get(queue.id, 0),
                lanes=sorted(own, key=lambda lane: -lane.queued)[:MOST_LANES],
                holds=held,
            )

        return view
