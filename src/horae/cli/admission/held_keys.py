"""`horae jobs limits`: who holds the keys of a job's limits and sequence."""

import click

from horae.cli.lazy import Command
from horae.cli.output import Column
from horae.cli.remote import Api, page_options, remote

COLUMNS: list[Column] = [
    ("KIND", "kind"),
    ("KEY", lambda held: held["key"] or ""),
    ("VALUE", "value"),
    ("HELD", lambda held: f"{held['used']}/{'-' if held['concurrency'] is None else held['concurrency']}"),
    ("WAITED FOR", lambda held: "yes" if held["waitedFor"] else ""),
    ("BY", lambda held: ", ".join(held["holders"])),
]


@click.command(cls=Command, examples=("horae jobs limits sync", "horae jobs limits sync -o json"))
@click.argument("job")
@page_options
@remote
async def limits(api: Api, job: str, limit: int, cursor: str | None) -> None:
    """List who holds the limits and the sequence of a job, key by key."""
    page = await api.client.jobs.limits(job, limit=limit, cursor=cursor)
    api.out.list(page.raw, COLUMNS, "Nothing holds a limit or a turn of this job.")
