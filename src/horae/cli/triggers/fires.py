"""`horae fires`: what fired, what did not and why, and what is to come."""

from typing import Any

import click

from horae.cli.lazy import HoraeGroup
from horae.cli.output import Column
from horae.cli.remote import Api, page_options, remote
from horae.cli.times import TIME
from horae.errors import BadInput


@click.group(
    cls=HoraeGroup, examples=("horae fires list --next", "horae fires list --job report --disposition skipped-overlap")
)
def fires() -> None:
    """Look at what fired and what will."""


@fires.command(
    "list",
    examples=(
        "horae fires list",
        "horae fires list --from 2026-11-14T00:00:00Z --to 2026-11-15T00:00:00Z",
        "horae fires list --job report --trigger nightly --disposition fired",
        "horae fires list --next --limit 20",
    ),
)
@click.option("--from", "since", type=TIME, help="Not before this; an hour ago otherwise.")
@click.option("--to", "until", type=TIME, help="Before this; in a day otherwise.")
@click.option("--job", metavar="JOB", help="Only those of this job, by name or id.")
@click.option("--trigger", metavar="NAME", help="Only those of triggers of this name.")
@click.option("--disposition", metavar="WORD", help="Only those of this fate: fired, planned, skipped-overlap, ...")
@click.option("--next", "coming", is_flag=True, help="Only those to come, within a year unless --to says otherwise.")
@page_options
@remote
async def list_(api: Api, since: str | None, until: str | None, coming: bool, **filters: Any) -> None:
    """List fires of all jobs in the order of time: what became of each, then those to come."""
    if coming and filters["disposition"] not in (None, "planned"):
        raise BadInput("--next is about what is to come, which has no other disposition.", "Leave one of them out.")
    filters["disposition"] = "planned" if coming else filters["disposition"]
    page = await api.client.fires.list(since=since, until=until, **filters)
    columns: list[Column] = [
        ("AT", _when),
        ("FIRES", "count"),
        ("JOB", "job"),
        ("TRIGGER", "trigger"),
        ("RESULT", "disposition"),
        ("CAUSE", "cause"),
        ("EXECUTION", "executionId"),
    ]
    api.out.list(page.raw, columns, "Nothing fired and nothing will between these instants.")
    for note in page.raw["notes"]:
        api.out.say(note)


def _when(fire: dict[str, Any]) -> str:
    return str(fire.get("dueAt") or fire["at"]) if fire["count"] == 1 else f"{fire['at']} to {fire['until']}"


@fires.command(
    "count",
    examples=(
        "horae fires count",
        "horae fires count --from 2026-11-01 --to 2026-11-30 --timezone Europe/Paris",
        "horae fires count --by hour --job report",
    ),
)
@click.option("--from", "since", metavar="DAY", help="The first day, as 2026-11-15; today otherwise.")
@click.option("--to", "until", metavar="DAY", help="The last day; the first one otherwise.")
@click.option(
    "--by", type=click.Choice(["minute", "hour", "day"]), default="day", show_default=True, help="What a line is for."
)
@click.option("--timezone", metavar="ZONE", default="UTC", show_default=True, help="Whose days, as Europe/Paris.")
@click.option("--job", metavar="JOB", help="Only those of this job, by name or id.")
@remote
async def count(api: Api, since: str | None, until: str | None, **which: Any) -> None:
    """Count what fired, was missed or skipped and what is to come, by the minute, the hour or the day."""
    counted = (await api.client.fires.counts(since=since, until=until, **which)).raw
    columns: list[Column] = [
        ("FROM", "at"),
        ("FIRED", "fired"),
        ("MISSED", "missed"),
        ("SKIPPED", "skipped"),
        ("TO COME", lambda one: f"{one['planned']}{'+' if one['more'] else ''}"),
    ]
    api.out.list(counted, columns, "There are no days to count.")
    for note in counted["notes"]:
        api.out.say(note)
