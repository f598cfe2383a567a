"""`horae jobs stats`: statistics of a job; `horae overview`: the overview of a namespace."""

from typing import Any

import click

from horae.cli.lazy import HoraeCommand
from horae.cli.output import Column, rough
from horae.cli.remote import Api, remote
from horae.cli.times import TIME
from horae.env import SECOND

SHOWN = ("executions", "success", "failed", "cancelled", "skipped", "retried", "lost")


@click.command(
    cls=HoraeCommand,
    examples=("horae overview", "horae overview --from 2026-11-15T00:00:00Z", "horae overview -o json"),
)
@click.option(
    "--from",
    "since",
    type=TIME,
    help="Count executions that ended from this time on, rounded down to a whole step; by default an hour ago.",
)
@click.option(
    "--to", "until", type=TIME, help="Count executions that ended before this time, rounded up; by default now."
)
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


@click.command(
    cls=HoraeCommand,
    examples=("horae jobs stats daily-report", "horae jobs stats daily-report --from 2026-11-01T00:00:00Z -o json"),
)
@click.argument("job")
@click.option(
    "--from",
    "since",
    type=TIME,
    help="Count executions that ended from this time on, rounded down to a whole step; by default a week ago.",
)
@click.option(
    "--to", "until", type=TIME, help="Count executions that ended before this time, rounded up; by default now."
)
@remote
async def stats(api: Api, job: str, since: str | None, until: str | None) -> None:
    """Show a job's statistics: outcomes, durations and waiting times of its executions."""
    found = await api.client.jobs.statistics(job, since=since, until=until)
    if not api.out.is_for_people:
        return api.out.document(found.raw)
    shown: dict[str, object] = {name: getattr(found, name) for name in SHOWN}
    shown |= {"success rate": percent(found.success_rate), "retry rate": percent(found.retry_rate)}
    shown |= {name: seconds(getattr(found, name)) for name in ("p50", "p95", "p99", "mean")}
    shown |= {"waited p50": seconds(found.wait_p50), "waited p95": seconds(found.wait_p95)}
    api.out.one(shown)
    if not found.executions:
        api.out.say(f"No execution of {job} ended in this window.")
    return None


def percent(share: float | None) -> str:
    return "" if share is None else f"{share:.1%}"


def seconds(value: float | None) -> str:
    """Return a duration for users: with three digits if it is below ten seconds, else in larger units."""
    if value is None:
        return ""
    return f"{value:.3g}s" if value < 10 else rough(int(value * SECOND))
