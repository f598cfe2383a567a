"""`horae jobs versions`, `diff` and `rollback`: earlier versions of a job's definition."""

from collections.abc import Iterator
from typing import Any

import click

from horae.cli.lazy import HoraeCommand
from horae.cli.output import Column, as_yaml, one_line
from horae.cli.remote import Api, remote
from horae.cli.terminal import echo, style
from horae.client.views import JobPlan
from horae.errors import BadInput

EARLIER = "Each edit creates a version: horae jobs edit {}."


@click.command(
    cls=HoraeCommand,
    examples=("horae jobs versions daily-report", "horae jobs versions daily-report --version 3 -o yaml"),
)
@click.argument("job")
@click.option("--version", type=click.IntRange(1), metavar="N", help="Show the whole definition of this version.")
@remote
async def versions(api: Api, job: str, version: int | None) -> None:
    """List the versions of a job's definition, newest first."""
    if version is not None:
        return api.out.one((await api.client.jobs.version(job, version)).raw)
    page = await api.client.jobs.versions(job)
    columns: list[Column] = [
        ("VERSION", "version"),
        ("CURRENT", lambda version: "yes" if version.get("current") else ""),
        ("CREATED", lambda version: api.out.age(version.get("createdAt"))),
        ("DEFINITION", lambda version: one_line(_work_first(version.get("definition", {})), leave_out=("name",))),
    ]
    return api.out.list(page.raw, columns, "There are no versions.")


def _work_first(definition: dict[str, Any]) -> dict[str, Any]:
    """Move the fields that matter most, the work and the schedule, to the front."""
    first = [name for name in ("command", "python", "http", "workflow", "schedule") if name in definition]
    return {name: definition[name] for name in dict.fromkeys([*first, *definition])}


@click.command(
    cls=HoraeCommand,
    examples=(
        "horae jobs diff daily-report",
        "horae jobs diff daily-report 3",
        "horae jobs diff daily-report 3 5 -o json",
    ),
)
@click.argument("job")
@click.argument("before", type=click.IntRange(1), required=False, metavar="[A]")
@click.argument("after", type=click.IntRange(1), required=False, metavar="[B]")
@remote
async def diff(api: Api, job: str, before: int | None, after: int | None) -> None:
    """Show the differences between versions A and B; by default, B is the present version and A the one before B."""
    new = after if after is not None else await _present(api, job)
    old = before if before is not None else new - 1
    if old < 1:
        raise BadInput(f"Job {job} has no version before version 1.", EARLIER.format(job))
    found = (await api.client.jobs.diff(job, old, new)).raw
    if not api.out.is_for_people:
        return api.out.document(found)
    if not found["changes"]:
        return api.out.say(f"Versions {old} and {new} of job {job} are the same.")
    _show(found["changes"])
    return None


def _show(changes: list[dict[str, Any]]) -> None:
    for line in diff_lines(changes):
        echo(style(line, fg={"-": "red", "+": "green"}.get(line[:1])), styled=True)


def show_plan(api: Api, plan: JobPlan, what: str) -> None:
    """Print the result of a dry run; `what` is "would be created" or "would change"."""
    if not api.out.is_for_people:
        return api.out.document(plan.raw)
    if what == "would change" and not plan.changes:
        return api.out.say(f"Job {plan.name} would stay as it is, at version {plan.version}.")
    api.out.say(f"Job {plan.name} {what}: version {plan.version}, {plan.schedule_text or 'run when it is triggered'}.")
    _show(plan.changes)
    for note in plan.notes:
        api.out.say(note)
    return None


async def _present(api: Api, job: str) -> int:
    return (await api.client.jobs.get(job)).version or 1


def diff_lines(changes: list[dict[str, Any]]) -> Iterator[str]:
    """Yield lines for each difference: the value before with "-", then the value after with "+"."""
    for change in changes:
        for sign, side in (("-", "before"), ("+", "after")):
            if side in change:
                yield from _field(sign, change["path"], change[side])


def _field(sign: str, path: str, value: Any) -> Iterator[str]:
    if isinstance(value, str) and "\n" not in value:
        yield f"{sign} {path}: {value}"
    elif value in ([], {}) or not isinstance(value, dict | list | str):
        yield f"{sign} {path}: {as_yaml(value).removesuffix('...' + chr(10)).rstrip()}"
    else:
        yield f"{sign} {path}:"
        text = value if isinstance(value, str) else as_yaml(value)
        yield from (f"{sign}   {line}" for line in text.rstrip().splitlines())


@click.command(
    cls=HoraeCommand,
    examples=("horae jobs rollback daily-report --to 3", "horae jobs rollback daily-report --to 3 --if-version 5"),
)
@click.argument("job")
@click.argument("version", type=click.IntRange(1), required=False)
@click.option(
    "--to", type=click.IntRange(1), metavar="N", help="The version to go back to; the previous one by default."
)
@click.option("--if-version", type=click.IntRange(1), metavar="N", help="Only if the job is still at this version.")
@remote
async def rollback(api: Api, job: str, version: int | None, to: int | None, if_version: int | None) -> None:
    """Restore the definition of an earlier version, as the newest version."""
    if version is not None and to is not None:
        raise click.UsageError("Give the version once: horae jobs rollback NAME --to 3")
    wanted = to if to is not None else version
    if wanted is None:
        present = if_version if if_version is not None else await _present(api, job)
        if_version, wanted = present, present - 1
        if wanted < 1:
            raise BadInput(f"Job {job} has no version before version 1.", EARLIER.format(job))
    rolled = await api.client.jobs.rollback(job, wanted, if_match=f'"{if_version}"' if if_version else None)
    if not api.out.is_for_people:
        return api.out.document(rolled.raw)
    return api.out.say(f"Job {rolled.name} is at version {rolled.version}, equal to version {wanted}.")


COMMANDS = (versions, diff, rollback)
