"""`horae apply`: change the server's jobs, templates and calendars to match a file or an app."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import click

from horae.cli.lazy import HoraeCommand
from horae.cli.remote import Api, remote
from horae.cli.terminal import echo
from horae.cli.values import read_applied
from horae.errors import HoraeError

Places = Mapping[str, tuple[str, int]]  # the file and line of each job's function
MOST_FIELDS = 6
_NUMBER = re.compile(r"jobs\[(\d+)\]")


@click.command(cls=HoraeCommand, examples=("horae apply -f jobs.yaml --dry-run", "horae apply --app reports.jobs:app"))
@click.option(
    "-f",
    "--file",
    multiple=True,
    metavar="FILE",
    help="A YAML or JSON file of jobs, templates and calendars; - is stdin.",
)
@click.option("--app", metavar="MODULE:APP", help="An app whose functions are jobs.")
@click.option("--dry-run", is_flag=True, help="Show the changes without making them.")
@remote
async def apply(api: Api, file: tuple[str, ...], app: str | None, dry_run: bool) -> None:
    """Create or change jobs, templates and calendars from a file or an app, all of them or none.

    Objects that the input does not name stay unchanged.
    """
    read = [read_applied(path) for path in file]
    calendars = [calendar for found, _, _ in read for calendar in found]
    templates = [template for _, found, _ in read for template in found]
    jobs = [job for _, _, found in read for job in found]
    places: Places = {}
    if app:
        found, places = definitions_of(app)
        jobs += found
    if not jobs and not calendars and not templates:
        raise click.UsageError("There is nothing to apply: give -f FILE or --app MODULE:APP.")
    with with_places(jobs, places):
        done = await api.client.apply(calendars=calendars, templates=templates, jobs=jobs, dry_run=dry_run)
    if not api.out.is_for_people:
        api.out.document({"items": [one.raw for one in done], "dryRun": dry_run})
        return
    for one in done:
        echo(f"{one.outcome.ljust(9)}  {'' if one.kind == 'job' else f'{one.kind} '}{one.name}{_fields(one.changes)}")
        for job in one.affected:
            echo(f"{'changed'.ljust(9)}  {job}, created from template {one.name}")
    if dry_run:
        echo("\nNothing was written: these changes would be made.")


def _fields(changes: list[Any]) -> str:
    """Return the names of the first changed fields."""
    names = list(dict.fromkeys(change["path"].partition(".")[0] for change in changes))
    more = ", ..." if len(names) > MOST_FIELDS else ""
    return f": {', '.join(names[:MOST_FIELDS])}{more}" if names else ""


@contextmanager
def with_places(jobs: Sequence[Mapping[str, Any]], places: Places) -> Iterator[None]:
    """Add the file and line of a job's function to an error about the definition of that job."""
    try:
        yield
    except HoraeError as error:
        number = _NUMBER.match(str(error.fields.get("field", "")))
        place = places.get(jobs[int(number[1])]["name"]) if number and int(number[1]) < len(jobs) else None
        if place is not None:
            error.detail = f"{error.detail} ({place[0]}, line {place[1]})"
        raise


def definitions_of(place: str) -> tuple[list[dict[str, Any]], Places]:
    """Return the job definitions of an app in the API's form, and the file and line of each job's function."""
    from horae.cli.apps import load_app, places_of

    app = load_app(place)
    return app.definitions(), places_of(app)
