"""Operations on queues: define, make default, drain, purge and show.

After a change of a policy the reranker reorders the queue.
"""

from collections.abc import Callable, Sequence
from typing import Any

import structlog
from msgspec import Struct

from horae.engine.admission.holds import QueueHolds
from horae.engine.base.hints import Hint, Hints
from horae.engine.base.refs import in_quotes, nearest
from horae.engine.definitions.directory import LocalDirectory
from horae.engine.executions.outcomes import Outcomes
from horae.env import Env
from horae.errors import BadInput, Conflict, NotFound
from horae.model.admission.policy import write_policy
from horae.model.admission.queue import (
    DEFAULT_QUEUE,
    QUEUE,
    Queue,
    QueueSpec,
    QueueState,
    merge_queue,
    parse_queue,
    show_queue,
)
from horae.model.admission.queue_view import LaneView, QueueView
from horae.model.fields.values import NAME, a_name
from horae.store.admission import queues as moves
from horae.store.admission.holds import running_by_queue
from horae.store.admission.lanes import Lane
from horae.store.contract import Store
from horae.store.executions.leaving.cancel_job import START
from horae.store.executions.reads.depths import depths
from horae.store.tenancy import namespaces
from horae.store.triggers.dependencies.starts import Consequences

BATCH = 500  # slices ended in one transaction
MOST_QUEUES = 10_000  # queues of a namespace
MOST_LANES = 100  # lanes in a queue's view: the deepest ones
log = structlog.get_logger("horae.engine")


class PurgeResult(Struct, frozen=True):
    """The number of executions that a purge ended."""

    cancelled: int


class Queues:
    """Defines, changes and purges queues."""

    def __init__(
        self,
        env: Env,
        store: Store,
        directory: LocalDirectory,
        hints: Hints,
        outcomes: Outcomes,
    ) -> None:
        self._env, self._store, self._directory, self._hints = env, store, directory, hints
        self._outcomes = outcomes

    async def put(self, namespace: int, name: str, body: Any) -> Queue:
        """Define a queue, new or existing; missing fields take their defaults. Raises BadInput."""
        own = await self._store.read(lambda: namespaces.by_id(namespace))
        if isinstance(body, dict) and body.get("policy") is None and own is not None and own.policy is not None:
            body = {**body, "policy": write_policy(own.policy)}
        spec, default = parse_queue(body)
        return await self._define(namespace, name, lambda before: (spec, default))

    async def patch(self, namespace: int, name: str, body: Any) -> Queue:
        """Change some fields of a queue; null resets a field to its default. Raises BadInput, NotFound."""
        await self.get(namespace, name)

        def change(before: Queue | None) -> tuple[QueueSpec, bool | None]:
            return parse_queue(merge_queue(QueueSpec() if before is None else before.spec, body))

        return await self._define(namespace, name, change)

    async def _define(
        self, namespace: int, name: str, change: Callable[[Queue | None], tuple[QueueSpec, bool | None]]
    ) -> Queue:
        a_name(name, "queue", NAME)
        now = self._env.now()
        if self._find(namespace, name) is None and len(self._queues_of(namespace)) >= MOST_QUEUES:
            raise Conflict(
                f"The namespace has {MOST_QUEUES} queues, and no more are allowed.",
                "Use one queue with fair shares instead of many queues.",
            )
        queue = await self._store.write(lambda: moves.define(namespace, name, change, now))
        log.info("queue defined", queue=name, policy=queue.policy.kind, default=queue.is_default)
        await self._publish()
        return queue

    async def get(self, namespace: int, name: str) -> Queue:
        """Return a queue by name. Raises NotFound with the nearest names."""
        found = self._find(namespace, name)
        if found is None:
            await self._directory.load()
            found = self._find(namespace, name)
        if found is None:
            names = [queue.name for queue in self._queues_of(namespace)]
            near = nearest(name, names)
            listed = "List queues with `horae queues list`; make one with `horae queues set`."
            remedy = f"Did you mean {in_quotes(near)}?" if near else listed
            raise NotFound(f'No queue named "{name[:128]}".', remedy, queue=name[:128])
        return found

    async def set_state(self, namespace: int, name: str, state: QueueState) -> Queue:
        """Open a queue for submissions or drain it: a draining queue refuses new executions and runs those it has.

        Raises NotFound.
        """
        queue = await self.get(namespace, name)
        if queue.state != state:
            await self._store.write(lambda: moves.set_state(queue.id, state))
            log.info("queue state", queue=name, state=state)
            await self._publish()
        return await self.get(namespace, name)

    async def purge(self, namespace: int, name: str, confirm: str | None, by: str) -> PurgeResult:
        """Cancel all executions of a queue that have not begun. Raises BadInput unless `confirm` is its name."""
        queue = await self.get(namespace, name)
        if confirm != name:
            detail = f'This cancels everything in the queue "{name}" that has not begun.'
            raise BadInput(detail, f"Confirm it with ?confirm={name}.", field="confirm")
        log.info("queue purged", queue=name, by=by)
        reason = f"purged by {by}" if by else "purged"
        total = await self._purge_waiting(queue.id, reason)
        for lane in await self._store.read(lambda: moves.lanes_of_queue(queue.id)):
            total += await self._purge_lane(lane, reason)
        return PurgeResult(total)

    async def _purge_lane(self, lane: int, reason: str) -> int:
        total, more = 0, True
        while more:
            started = Consequences()
            done = await self._store.change(
                lambda now: moves.purge_lane(lane, self._env.new_id, BATCH, reason, now, started)  # noqa: B023
            )
            self._store.started(started)
            total, more = total + self._publish_cancelled(done), done.next is not None
        return total

    async def _purge_waiting(self, queue: int, reason: str) -> int:
        total, after = 0, START
        while True:
            started = Consequences()
            done = await self._store.change(
                lambda now: moves.purge_waiting(queue, self._env.new_id, after, BATCH, reason, now, started)  # noqa: B023
            )
            self._store.started(started)
            total += self._publish_cancelled(done)
            if done.next is None:
                return total
            after = done.next

    def _publish_cancelled(self, done: moves.PurgeStep) -> int:
        for job, count in done.jobs.items():
            self._outcomes.publish_cancelled(job, count)
        return sum(done.jobs.values())

    def default_of(self, namespace: int) -> str:
        """Return the name of the queue for jobs that name no queue."""
        return next((queue.name for queue in self._queues_of(namespace) if queue.is_default), DEFAULT_QUEUE)

    async def _publish(self) -> None:
        await self._directory.load()
        self._hints.send(Hint(queues=True))

    def _find(self, namespace: int, name: str) -> Queue | None:
        return next((queue for queue in self._queues_of(namespace) if queue.name == name), None)

    def _queues_of(self, namespace: int) -> list[Queue]:
        return [queue for queue in self._directory.queues.values() if queue.namespace == namespace]


class QueueViews:
    """Builds views of queues with their depth, running executions and holds."""

    def __init__(self, store: Store, holds: QueueHolds) -> None:
        self._store, self._holds = store, holds

    async def list(self, namespace: int) -> list[QueueView]:
        """Return all queues of a namespace as they are in the store, not as this server's directory has them."""
        directory = await self._store.directory()
        view = await self._viewer(namespace, directory.lanes)
        return [view(queue) for queue in directory.queues if queue.namespace == namespace]

    async def show(self, queue: Queue) -> QueueView:
        """Return one queue."""
        return (await self._viewer(queue.namespace, (await self._store.directory()).lanes))(queue)

    async def _viewer(self, namespace: int, lanes: Sequence[Lane]) -> Callable[[Queue], QueueView]:
        """Return a function that builds views, with counts read once for the whole namespace."""
        queued = await self._store.read(lambda: depths(namespace))
        runs = await self._store.read(lambda: running_by_queue(namespace))
        holds = [hold for hold in await self._holds.list(namespace) if hold.state == "active"]

        lanes_by_queue: dict[int, list[LaneView]] = {}
        for lane in lanes:
            if lane.namespace != namespace:
                continue
            shown = LaneView(needs=sorted(lane.needs), share=lane.share, queued=queued.get(lane.id, 0))
            lanes_by_queue.setdefault(lane.queue, []).append(shown)

        def view(queue: Queue) -> QueueView:
            own = lanes_by_queue.get(queue.id, [])
            held = [hold for hold in holds if hold.queue in (None, queue.name)]
            paused = any(hold.indefinite for hold in held)
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
