"""`horae overview`: the overview of a namespace."""

from typing import Any

import click

from horae.cli.lazy import HoraeCommand
from horae.cli.output import Column
from horae.cli.remote import Api, remote
from horae.cli.times import TIME
from horae.features.statistics.cli.statistics import seconds


@click.command(
    cls=HoraeCommand,
    examples=("horae overview", "horae overview --from 2026-11-15T00:00:00Z", "horae overview -o json"),
)
@click.option(
    "--from", "since", type=TIME, help="Count executions that ended at or after this time, by default an hour ago."
)
@click.option("--to", "until", type=TIME, help="Count executions that ended before this time, by default now.")
@remote
async def overview(api: Api, since: str | None, until: str | None) -> None:
    """Show current and recent executions of a namespace."""
    found = await api.client.overview(since, until)
    if not api.out.is_for_people:
        return api.out.document(found.raw)
    fleet = found.workers
    api.out.say(f"Now:     {_counts_text(found.counts)}")
    api.out.say(f"Ended:   {_counts_text(found.ended)}")
    api.out.say(f"Workers: {_counts_text({name: fleet[name] for name in ('active', 'draining', 'lost')})}")
    api.out.say(f"Slots:   {fleet['busy']} of {fleet['slots']} busy")
    queues: list[Column] = [
        ("QUEUE", "queue"),
        ("QUEUED", "queued"),
        ("RUNNING", "running"),
        ("OLDEST", lambda one: seconds(one["oldestSeconds"])),
        ("HELD", lambda one: "yes" if one["held"] else ""),
    ]
    _table(api, found.queues, queues)
    running: list[Column] = [
        ("RUNNING SINCE", lambda one: api.out.age(one["startedAt"])),
        ("JOB", "jobName"),
        ("PROGRESS", "progress"),
        ("WORKER", "workerId"),
        ("EXECUTION", "executionId"),
    ]
    _table(api, found.running, running)
    return None


def _counts_text(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items())


def _table(api: Api, rows: list[dict[str, Any]], columns: list[Column]) -> None:
    if rows:
        api.out.say("")
        api.out.table(rows, columns)
