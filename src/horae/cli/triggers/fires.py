"""`horae fires`: past fires with their results, and coming fires."""

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
    """List past and coming fires of triggers."""


@fires.command(
    "list",
    examples=(
        "horae fires list",
        "horae fires list --from 2026-11-14T00:00:00Z --to 2026-11-15T00:00:00Z",
        "horae fires list --job report --trigger nightly --disposition fired",
        "horae fires list --next --limit 20",
    ),
)
@click.option("--from", "since", type=TIME, help="Only fires from this time on; an hour ago by default.")
@click.option("--to", "until", type=TIME, help="Only fires before this time; a day from now by default.")
@click.option("--job", metavar="JOB", help="Only fires of this job, by name or id.")
@click.option("--trigger", metavar="NAME", help="Only fires of triggers with this name.")
@click.option(
    "--disposition", metavar="WORD", help="Only fires with this disposition: fired, planned, skipped-overlap, ..."
)
@click.option("--next", "coming", is_flag=True, help="Only coming fires, by default within a year.")
@page_options
@remote
async def list_(api: Api, since: str | None, until: str | None, coming: bool, **filters: Any) -> None:
    """List fires of all jobs in the order of time: past fires with their results, then coming fires."""
    if coming and filters["disposition"] not in (None, "planned"):
        raise BadInput("--next lists coming fires, which are all planned.", "Remove --next or the disposition.")
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
    api.out.list(page.raw, columns, "There are no fires between these instants.")
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
@click.option("--from", "since", metavar="DAY", help="The first day, such as 2026-11-15; today by default.")
@click.option("--to", "until", metavar="DAY", help="The last day; the first day by default.")
@click.option(
    "--by",
    type=click.Choice(["minute", "hour", "day"]),
    default="day",
    show_default=True,
    help="The period that each line counts.",
)
@click.option(
    "--timezone",
    metavar="ZONE",
    default="UTC",
    show_default=True,
    help="The time zone of the days, such as Europe/Paris.",
)
@click.option("--job", metavar="JOB", help="Only fires of this job, by name or id.")
@remote
async def count(api: Api, since: str | None, until: str | None, **which: Any) -> None:
    """Count fired, missed, skipped and coming fires per minute, hour or day."""
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
