"""`horae workers`: who executes, and asking them to leave."""

from typing import Any

import click

from horae.cli.lazy import Group
from horae.cli.output import Column
from horae.cli.remote import Api, remote


@click.group(cls=Group, examples=("horae workers list", "horae workers drain WORKER"))
def workers() -> None:
    """List workers and drain them."""


@workers.command("list", examples=("horae workers list", "horae workers list -o json"))
@remote
async def list_(api: Api) -> None:
    """List workers: live, late, draining and lately lost, with their labels and what of them is in use."""
    page = await api.client.workers.list()
    columns: list[Column] = [
        ("WORKER", "workerId"),
        ("STATUS", "status"),
        ("HOST", "host"),
        ("RUNNING", "running"),
        ("USED", _used),
        ("QUEUES", "queues"),
        ("LABELS", "labels"),
        ("VERSION", "version"),
        ("SEEN", lambda one: api.out.age(one.get("lastHeartbeat"))),
    ]
    api.out.list(page.raw, columns, "There are no workers. Start one with: horae worker --server URL --key KEY")


def _used(worker: dict[str, Any]) -> str:
    """What is taken of a worker, of what it has: its slots first."""
    used, has = worker.get("used", {}), {"slots": worker.get("capacity", 0), **worker.get("resources", {})}
    return ", ".join(f"{used.get(name, 0)}/{amount} {name}" for name, amount in has.items())


@workers.command(examples=("horae workers show WORKER",))
@click.argument("worker")
@remote
async def show(api: Api, worker: str) -> None:
    """Show a worker by name or session id, with the jobs it knows."""
    api.out.one((await api.client.workers.get(worker)).raw)


@workers.command(examples=("horae workers drain WORKER",))
@click.argument("worker")
@remote
async def drain(api: Api, worker: str) -> None:
    """Ask a worker to finish what it runs and leave."""
    found: Any = await api.client.workers.drain(worker)
    if not api.out.is_for_people:
        return api.out.document(found.raw)
    api.out.say(f"{found.worker_id} has been asked to drain; it runs {found.running or 0}.")
    return None
