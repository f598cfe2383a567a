"""`horae queues`: what waits where."""

import click

from horae.cli.lazy import Group
from horae.cli.output import Column
from horae.cli.remote import Api, remote


@click.group(cls=Group, examples=("horae queues list",))
def queues() -> None:
    """List queues and what waits in them."""


@queues.command("list", examples=("horae queues list", "horae queues list -o json"))
@remote
async def list_(api: Api) -> None:
    """List queues."""
    page = await api.client.queues.list()
    known = {key for one in page.raw["items"] for key in one}
    columns: list[Column] = [("QUEUE", lambda one: one.get("name") or one.get("queue"))]
    columns += [(key.upper(), key) for key in ("policy", "waiting", "queued", "running", "workers") if key in known]
    api.out.list(page.raw, columns, "There are no queues yet; the first job makes one.")
