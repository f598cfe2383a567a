"""`horae backfills`: run past fires that did not run; show, pause, resume and cancel backfills."""

from collections.abc import Sequence
from typing import Any

import click

from horae.cli.executions.waiting import in_time
from horae.cli.fields import given_by, options_of
from horae.cli.lazy import HoraeGroup
from horae.cli.output import Column, TimeField
from horae.cli.remote import Api, remote
from horae.cli.request import Given, lists, message, request
from horae.cli.times import SPAN
from horae.cli.values import params as read_params
from horae.env import Micros
from horae.features.backfills.client import BackfillInfo
from horae.features.backfills.model.request import BACKFILL

CREATE = "horae backfills create daily-report --from 2026-11-01T00:00:00Z --to 2026-11-15T00:00:00Z"


@click.group(cls=HoraeGroup, examples=(f"{CREATE} --dry-run", "horae backfills list", "horae backfills show BACKFILL"))
def backfills() -> None:
    """Run past fires that did not run."""


@backfills.command(examples=(f"{CREATE} --dry-run", f"{CREATE} --max-concurrent 4 --wait"))
@click.argument("job")
@options_of(BACKFILL, without=("order", "dryRun"), required=("from", "to"))
@click.option("--newest-first", is_flag=True, help="Start with the newest fires.")
@click.option("--param", multiple=True, metavar="NAME=VALUE", help="A parameter for all executions; repeatable.")
@click.option("--params", metavar="JSON", help="Parameters for all executions; @FILE or - reads them.")
@click.option(
    "--dry-run", is_flag=True, help="Only show the number of fires that would run, and the first and last one."
)
@click.option("-w", "--wait", is_flag=True, help="Wait until it ends; exit 1 unless all succeeded.")
@click.option(
    "--timeout",
    type=SPAN,
    help="The longest wait, such as 1h; then the exit code is 1, and the backfill continues.",
)
@remote
async def create(
    api: Api, job: str, newest_first: bool, dry_run: bool, wait: bool, timeout: Micros | None, param: tuple[str, ...],
    params: str | None, **options: Any,
) -> None:  # fmt: skip
    """Run the fires of a job in a time range that did not run.

    A fire is identified by its trigger and its time. If it ran before, it runs again only with --force.
    """
    settings = BACKFILL.keywords(given_by(BACKFILL, options))
    since, until = settings.pop("from_"), settings.pop("to")
    settings |= {"order": "newest" if newest_first else None, "params": read_params(param, params)}
    if dry_run:
        return _print_plan(api, (await api.client.backfills.plan(job, since, until, **settings)).raw)
    backfill = await api.client.backfills.create(job, since, until, **settings)
    if wait or timeout is not None:
        return await _wait_for_end(api, backfill, timeout)
    if not api.out.is_for_people:
        return api.out.document(backfill.raw)
    api.out.say(f"Backfill {backfill.id} of {backfill.fires:,} fire{'' if backfill.fires == 1 else 's'} has started.")
    return _print_notes(api, backfill.notes)


def _print_plan(api: Api, plan: dict[str, Any]) -> None:
    if not api.out.is_for_people:
        return api.out.document(plan)
    many = f"{plan['toRun']:,} of {plan['fires']:,} fire{'' if plan['fires'] == 1 else 's'} would run"
    span = f", from {plan['firstFireAt']} to {plan['lastFireAt']}" if plan.get("firstFireAt") else ""
    api.out.say(f"{many}{span}.")
    return _print_notes(api, plan["notes"])


def _print_notes(api: Api, notes: Sequence[str]) -> None:
    for note in notes:
        api.out.say(note)


async def _wait_for_end(api: Api, made: BackfillInfo, timeout: Micros | None) -> None:
    """Wait until a backfill has ended; exit 1 unless all its executions succeeded."""
    remedy = f"wait again with `horae backfills show {made.id} --wait`"
    final = await in_time(api, api.client.backfills.wait(made.id), timeout, made.id, what="Backfill", remedy=remedy)
    _print_summary(api, final, {})
    if final.is_stuck and api.out.is_for_people:
        _print_notes(api, final.notes)
    if final.state != "done" or final.failed or final.ended_otherwise:
        click.get_current_context().exit(1)


def _summary(b: BackfillInfo, given: Given) -> str:
    parts = [f"{b.succeeded:,} succeeded"]
    counts = (
        (b.failed, "failed"),
        (b.ended_otherwise, "ended with another outcome"),
        (b.live, "live"),
        (b.already_ran, "ran before"),
    )
    parts += [f"{count:,} {what}" for count, what in (*counts, (b.unknown, "unknown")) if count]
    return f"Backfill {b.id}: {b.state}; {', '.join(parts)} of {b.fires:,}."


_print_summary = message(_summary)


COLUMNS: list[Column] = [
    ("ID", "backfillId"),
    ("JOB", "jobName"),
    ("STATE", "state"),
    ("DONE", lambda one: f"{one['progress']:g}%"),
    ("FIRES", "fires"),
    ("LIVE", "live"),
    ("FAILED", "failed"),
    ("FROM", "from"),
    ("TO", "to"),
    ("CREATED", TimeField("createdAt")),
]
RUNS: list[Column] = [
    ("FIRE", "fireAt"),
    ("TRIGGER", "trigger"),
    ("EXECUTION", "executionId"),
    ("OUTCOME", lambda one: one.get("outcome") or "live"),
    ("FORCED", "forced"),
]
ONE = {"backfill_id": "backfill"}
request(
    backfills, "backfills.list",
    lists(COLUMNS, "There are no backfills. Create one with: horae backfills create JOB --from --to"),
    examples=("horae backfills list", "horae backfills list --job daily-report -o json"),
)  # fmt: skip


@backfills.command(examples=("horae backfills show BACKFILL", "horae backfills show BACKFILL --wait"))
@click.argument("backfill")
@click.option("-w", "--wait", is_flag=True, help="Wait until it ends; exit 1 unless all succeeded.")
@click.option(
    "--timeout",
    type=SPAN,
    help="The longest wait, such as 1h; then the exit code is 1, and the backfill continues.",
)
@remote
async def show(api: Api, backfill: str, wait: bool, timeout: Micros | None) -> None:
    """Show a backfill and its progress."""
    found = await api.client.backfills.get(backfill)
    if wait or timeout is not None:
        return await _wait_for_end(api, found, timeout)
    return api.out.one(found.raw)


request(
    backfills, "backfills.runs", lists(RUNS, "It has no executions yet."), called=ONE,
    examples=("horae backfills runs BACKFILL",),
)  # fmt: skip


request(backfills, "backfills.pause", _print_summary, called=ONE, examples=("horae backfills pause BACKFILL",))


request(backfills, "backfills.resume", _print_summary, called=ONE, examples=("horae backfills resume BACKFILL",))


@backfills.command(examples=("horae backfills cancel BACKFILL", "horae backfills cancel BACKFILL --executions"))
@click.argument("backfill")
@click.option("--executions", is_flag=True, help="Also cancel its executions that have not ended.")
@remote
async def cancel(api: Api, backfill: str, executions: bool) -> None:
    """End a backfill: it starts no more executions. Those already started finish, except with --executions."""
    _print_summary(api, await api.client.backfills.cancel(backfill, executions=executions), {})
