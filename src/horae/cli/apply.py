"""`horae apply`: make the server's jobs be as a file or an app says."""

from collections.abc import Iterable
from graphlib import CycleError, TopologicalSorter
from typing import Any

import click

from horae.cli.lazy import Command
from horae.cli.remote import Api, remote
from horae.cli.values import read_documents
from horae.errors import BadInput


@click.command(cls=Command, examples=("horae apply -f jobs.yaml", "horae apply --app reports.jobs:app"))
@click.option("-f", "--file", multiple=True, metavar="FILE", help="A YAML or JSON file of jobs; - is stdin.")
@click.option("--app", metavar="MODULE:APP", help="An app whose functions are jobs.")
@remote
async def apply(api: Api, file: tuple[str, ...], app: str | None) -> None:
    """Create or change jobs from a file or an app; jobs it does not name stay as they are."""
    documents = [job for path in file for job in read_documents(path)]
    if app:
        documents += definitions_of(app)
    if not documents:
        raise click.UsageError("There is nothing to apply: give -f FILE or --app MODULE:APP.")
    done = []
    for document in in_order(documents):
        job, outcome = await api.client.jobs.apply(document)
        done.append({"name": job.name, "outcome": outcome, "version": job.version, "jobId": job.job_id})
        if api.out.is_for_people:
            click.echo(f"{outcome.ljust(9)}  {job.name}")
    if not api.out.is_for_people:
        api.out.document({"items": done})


def definitions_of(place: str) -> list[dict[str, Any]]:
    """The jobs that an app defines, as the API spells them."""
    from horae.cli.apps import load_app

    found: list[dict[str, Any]] = load_app(place).definitions()
    return found


def in_order(documents: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """What others depend on comes first, so that its name is known when they come."""
    by_name: dict[str, dict[str, Any]] = {}
    for document in documents:
        if document["name"] in by_name:
            raise BadInput(f"{document['name']!r} is defined twice.", "Leave one out, or rename it.", field="name")
        by_name[document["name"]] = document
    needs = {name: set(document.get("dependencies") or ()) & set(by_name) for name, document in by_name.items()}
    try:
        return [by_name[name] for name in TopologicalSorter(needs).static_order()]
    except CycleError as error:
        circle = " -> ".join(error.args[1])
        raise BadInput(f"These jobs depend on each other in a circle: {circle}.", "Break it.") from None
