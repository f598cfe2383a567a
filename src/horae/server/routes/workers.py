"""Workers: the processes that execute, as people see them."""

from horae.errors import Conflict, NotFound
from horae.model.view import Page
from horae.server.call import Call
from horae.server.reply import Reply, ok
from horae.server.route import API, get, post
from horae.server.views import WorkerView


@get(f"{API}/workers", "workers.list", Page[WorkerView])
async def list_workers(call: Call) -> Reply:
    """List workers that are there or were lost lately, newest first."""
    workers = await call.node.workers.list(call.namespace)
    return ok(Page(items=[WorkerView.of(worker) for worker in workers]))


@get(f"{API}/workers/{{id}}", "workers.get", WorkerView, refuses=(NotFound,))
async def get_worker(call: Call) -> Reply:
    """Read a worker, by its name or by its session's id."""
    return ok(WorkerView.of(await call.node.workers.show(call.namespace, call.path("id"))))


@post(f"{API}/workers/{{id}}/drain", "workers.drain", WorkerView, status=202, refuses=(NotFound, Conflict))
async def drain(call: Call) -> Reply:
    """Ask a worker to finish what it runs and leave."""
    return ok(WorkerView.of(await call.node.workers.drain(call.namespace, call.path("id"))), 202)
