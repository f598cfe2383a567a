"""Workers: the processes that execute jobs."""

from uuid import UUID

from horae.engine.fleet.workers import Status, WorkerProcess
from horae.errors import Conflict, NotFound
from horae.model.base.instant import format_instant
from horae.model.base.view import CompleteList, Time, View
from horae.server.access import OPERATE, VIEW
from horae.server.call import ApiCall
from horae.server.reply import Response, ok
from horae.server.route import API, REQUEST, get, post
from horae.server.scopes import closed


class WorkerView(View, frozen=True, kw_only=True):
    """A process that executes jobs.

    `capacity` is the number of its slots, `running` that of the executions it holds. `used` has the number of used
    `slots` and the used amounts of its `resources`. Its labels include `worker` and `host`.
    """

    worker_id: str
    session_id: UUID
    host: str
    pid: int
    version: str
    labels: dict[str, str]
    queues: list[str]
    capacity: int
    running: int
    resources: dict[str, int]
    used: dict[str, int]
    jobs: list[str]
    started_at: Time
    last_heartbeat: Time
    status: Status

    @classmethod
    def of(cls, worker: WorkerProcess) -> "WorkerView":
        return cls(
            worker_id=worker.worker, session_id=worker.session, host=worker.host, pid=worker.pid,
            version=worker.version, labels=worker.labels, queues=list(worker.queues), capacity=worker.capacity,
            running=worker.running, resources=worker.resources, used=worker.used, jobs=list(worker.jobs),
            started_at=format_instant(worker.started_at), last_heartbeat=format_instant(worker.last_seen),
            status=worker.status,
        )  # fmt: skip


@get(f"{API}/workers", "workers.list", CompleteList[WorkerView], access=VIEW, scope=closed)
async def list_workers(call: ApiCall) -> Response:
    """List workers that are present or were lost recently, newest first."""
    workers = await call.node.fleet.workers.list(call.namespace)
    return ok(CompleteList(items=[WorkerView.of(worker) for worker in workers]))


@get(f"{API}/workers/{{id}}", "workers.get", WorkerView, access=VIEW, scope=closed, refuses=(NotFound,))
async def get_worker(call: ApiCall) -> Response:
    """Read a worker, by its name or its session's id."""
    return ok(WorkerView.of(await call.node.fleet.workers.show(call.namespace, call.path("id"))))


@post(
    f"{API}/workers/{{id}}/drain", "workers.drain", WorkerView,
    access=OPERATE, scope=closed, audit=REQUEST, status=202, refuses=(NotFound, Conflict),
)  # fmt: skip
async def drain(call: ApiCall) -> Response:
    """Ask a worker to finish its running executions and leave."""
    return ok(WorkerView.of(await call.node.fleet.workers.drain(call.namespace, call.path("id"))), 202)
