"""`horae apply`: make the server's jobs, templates and calendars be as a file or an app says."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from graphlib import CycleError, TopologicalSorter
from typing import Any

import click

from horae.cli.lazy import Command
from horae.cli.remote import Api, remote
from horae.cli.terminal import echo
from horae.cli.values import read_applied
from horae.errors import BadInput, HoraeError
from horae.model.calendar.spelling import references_in


@click.command(cls=Command, examples=("horae apply -f jobs.yaml", "horae apply --app reports.jobs:app"))
@click.option(
    "-f",
    "--file",
    multiple=True,
    metavar="FILE",
    help="A YAML or JSON file of jobs, templates and calendars; - is stdin.",
)
@click.option("--app", metavar="MODULE:APP", help="An app whose functions are jobs.")
@remote
async def apply(api: Api, file: tuple[str, ...], app: str | None) -> None:
    """Create or change jobs, templates and calendars from a file or an app; those it does not name stay as they are."""
    read = [read_applied(path) for path in file]
    calendars = [calendar for found, _, _ in read for calendar in found]
    templates = [template for _, found, _ in read for template in found]
    documents = [job for _, _, found in read for job in found]
    if app:
        documents += definitions_of(app)
    if not documents and not calendars and not templates:
        raise click.UsageError("There is nothing to apply: give -f FILE or --app MODULE:APP.")
    done: list[dict[str, Any]] = [await _apply_calendar(api, calendar) for calendar in in_reach(calendars)]
    done += [await _apply_template(api, template) for template in _by_name(templates).values()]
    for document in in_order(documents):
        with _speaking_of(document["name"], many=len(documents) > 1):
            job, outcome = await api.client.jobs.apply(document)
        done.append({"name": job.name, "outcome": outcome, "version": job.version, "jobId": job.job_id})
        if api.out.is_for_people:
            echo(f"{outcome.ljust(9)}  {job.name}")
    if not api.out.is_for_people:
        api.out.document({"items": done})


@contextmanager
def _speaking_of(name: str, *, many: bool) -> Iterator[None]:
    """Of several jobs, say which one was refused."""
    try:
        yield
    except HoraeError as error:
        if many:
            error.detail = f"{name}: {error.detail}"
        raise


async def _apply_calendar(api: Api, document: dict[str, Any]) -> dict[str, Any]:
    calendar, outcome = await api.client.calendars.apply(document)
    if api.out.is_for_people:
        echo(f"{outcome.ljust(9)}  calendar {calendar.name}")
    return {"name": calendar.name, "outcome": outcome, "version": calendar.version, "kind": "calendar"}


async def _apply_template(api: Api, document: dict[str, Any]) -> dict[str, Any]:
    template, outcome = await api.client.templates.apply(document)
    if api.out.is_for_people:
        echo(f"{outcome.ljust(9)}  template {template.name}")
        for one in template.affected:
            echo(f"{'changed'.ljust(9)}  {one['job']}, made from it")
    return {"name": template.name, "outcome": outcome, "version": template.version, "kind": "template"}


def definitions_of(place: str) -> list[dict[str, Any]]:
    """The jobs that an app defines, as the API spells them."""
    from horae.cli.apps import load_app

    found: list[dict[str, Any]] = load_app(place).definitions()
    return found


def in_reach(documents: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """What other calendars refer to comes first."""
    by_name = _by_name(documents)
    needs = {name: references_in(document) & set(by_name) for name, document in by_name.items()}
    return _sorted(by_name, needs, "These calendars refer to each other in a circle")


def in_order(documents: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """What others depend on comes first, so that its name is known when they come."""
    by_name = _by_name(documents)
    needs = {name: set(_upstreams(document)) & set(by_name) for name, document in by_name.items()}
    return _sorted(by_name, needs, "These jobs depend on each other in a circle")


def _upstreams(document: dict[str, Any]) -> Iterable[Any]:
    """The jobs that a definition depends on or runs, as it names them; what it says wrongly the server refuses."""
    for one in document.get("dependencies") or ():
        named = one.get("job") if isinstance(one, dict) else one
        if isinstance(named, str):
            yield named
    yield from _run_by(document.get("workflow"))


def _run_by(part: Any) -> Iterable[str]:
    """The jobs that steps name, however deep they lie."""
    if isinstance(part, list):
        for one in part:
            yield from _run_by(one)
    elif isinstance(part, dict):
        for named in (part.get("job"), part.get("undo")):
            if isinstance(named, str):
                yield named
        for field in ("steps", "workflow", "undo", "onSuccess", "onFailure", "finally"):
            yield from _run_by(part.get(field))


def _by_name(documents: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    by_name: dict[str, dict[str, Any]] = {}
    for document in documents:
        if document["name"] in by_name:
            raise BadInput(f"{document['name']!r} is defined twice.", "Leave one out, or rename it.", field="name")
        by_name[document["name"]] = document
    return by_name


def _sorted(by_name: dict[str, dict[str, Any]], needs: dict[str, set[str]], circular: str) -> list[dict[str, Any]]:
    try:
        return [by_name[name] for name in TopologicalSorter(needs).static_order()]
    except CycleError as error:
        raise BadInput(f"{circular}: {' -> '.join(error.args[1])}.", "Break it.") from None
