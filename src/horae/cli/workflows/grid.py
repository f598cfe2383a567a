"""`horae jobs grid`: the executions of a job with the states of their steps, by run or by data interval."""

from typing import Any, Literal

import click

from horae.cli.lazy import HoraeCommand
from horae.cli.output import Column
from horae.cli.remote import Api, page_options, remote
from horae.cli.workflows.flows import MARKS


@click.command(
    cls=HoraeCommand, examples=("horae jobs grid daily", "horae jobs grid daily --by interval --limit 30 -o json")
)
@click.argument("job")
@click.option(
    "--by",
    type=click.Choice(["run", "interval"]),
    help="The order of the executions: by run, newest first, or by data interval, which is the default.",
)
@page_options
@remote
async def grid(api: Api, job: str, by: Literal["run", "interval"] | None, **paging: Any) -> None:
    """Show a job's executions and the states of their steps, one line each."""
    found = (await api.client.jobs.grid(job, by=by or "interval", **paging)).raw
    if api.out.is_for_people and found["steps"]:
        api.out.say(f"Steps: {', '.join(found['steps'])}")
    columns: list[Column] = [
        ("DATA FROM", lambda one: (one.get("interval") or {}).get("start")),
        ("TO", lambda one: (one.get("interval") or {}).get("end")),
        ("DUE", "at"),
        ("STATUS", "status"),
        ("RAN", lambda one: "" if one.get("seconds") is None else f"{one['seconds']:.3g} s"),
        ("STEPS", lambda one: " ".join(MARKS.get(one["steps"].get(step, ""), " ") for step in found["steps"])),
        ("EXECUTION", "executionId"),
    ]
    api.out.list(found, columns, "The job has not run yet.")
