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
    columns: list[Column] = [
        ("QUEUE", "name"),
        ("POLICY", "policy"),
        ("STATE", "state"),
        ("QUEUED", "queued"),
        ("LANES", lambda queue: len(queue["lanes"])),
    ]
    api.out.list(page.raw, columns, "There are no queues yet; the first job makes one.")
