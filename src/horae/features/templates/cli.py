"""`horae templates`: definitions with parameters that jobs are made from."""

import click

from horae.cli.definitions.versions import diff_lines
from horae.cli.lazy import Group
from horae.cli.output import Column
from horae.cli.remote import Api, page_options, remote
from horae.cli.terminal import echo, style
from horae.cli.values import read_template
from horae.features.templates.client import Template


@click.group(
    cls=Group,
    examples=("horae templates put backup -f backup.yaml", "horae templates put backup -f backup.yaml --dry-run"),
)
def templates() -> None:
    """Write, list and delete templates of jobs; see what a change of one changes."""


@templates.command(
    examples=("horae templates put backup -f backup.yaml", "horae templates put -f backup.yaml --dry-run")
)
@click.argument("name", required=False)
@click.option("-f", "--file", required=True, metavar="FILE", help="Read it from a YAML or JSON file; - is stdin.")
@click.option("--dry-run", is_flag=True, help="Change nothing; show what would change of the jobs made from it.")
@click.option("--if-version", type=int, metavar="N", help="Only if the template is still at this version.")
@remote
async def put(api: Api, name: str | None, file: str, dry_run: bool, if_version: int | None) -> None:
    """Create a template, or change it with all jobs that were made from it."""
    document = read_template(file)
    called = name or document.get("name")
    if not called:
        raise click.UsageError("A template needs a name: horae templates put NAME -f FILE")
    match = f'"{if_version}"' if if_version else None
    done = await api.client.templates.put(called, document, if_match=match, dry_run=dry_run)
    if not api.out.is_for_people:
        return api.out.document(done.raw)
    return _tell(api, done, dry_run=dry_run)


def _tell(api: Api, done: Template, *, dry_run: bool) -> None:
    for one in done.affected:
        api.out.say(f"{one['job']}: {one['error']}" if one.get("error") else f"{one['job']}:")
        for line in diff_lines(one["changes"]):
            echo("  " + style(line, fg={"-": "red", "+": "green"}.get(line[:1])), styled=True)
    count = len(done.affected)
    jobs = f"{count} job{'' if count == 1 else 's'}"
    if dry_run:
        api.out.say(f"Version {done.version} of {done.name} would change {jobs}. Nothing was changed.")
    else:
        api.out.say(f"{done.name} is at version {done.version}; {jobs} changed with it.")


@templates.command("list", examples=("horae templates list", "horae templates list -o json"))
@page_options
@remote
async def list_(api: Api, limit: int | None, cursor: str | None) -> None:
    """List templates by name."""
    page = await api.client.templates.list(limit=limit, cursor=cursor)
    columns: list[Column] = [
        ("NAME", "name"),
        ("VERSION", "version"),
        ("PARAMETERS", lambda one: ", ".join(one["parameters"])),
        ("DESCRIPTION", "description"),
        ("UPDATED", lambda one: api.out.age(one["updatedAt"])),
    ]
    api.out.list(page.raw, columns, "There are no templates. Write one with: horae templates put NAME -f FILE")


@templates.command(examples=("horae templates show backup", "horae templates show backup -o yaml"))
@click.argument("name")
@remote
async def show(api: Api, name: str) -> None:
    """Show a template, and which jobs were made from it."""
    api.out.one((await api.client.templates.get(name)).raw, leave_out=("affected", "dryRun"))


@templates.command(examples=("horae templates versions backup",))
@click.argument("name")
@remote
async def versions(api: Api, name: str) -> None:
    """List a template's versions, newest first."""
    page = await api.client.templates.versions(name)
    columns: list[Column] = [
        ("VERSION", "version"),
        ("CREATED", lambda one: api.out.age(one["updatedAt"])),
        ("PARAMETERS", lambda one: ", ".join(one["parameters"])),
        ("DESCRIPTION", "description"),
    ]
    api.out.list(page.raw, columns, "There are no versions.")


@templates.command(examples=("horae templates delete backup",))
@click.argument("name")
@remote
async def delete(api: Api, name: str) -> None:
    """Delete a template that no job is made from."""
    await api.client.templates.delete(name)
    api.out.say(f"Deleted template {name}.")
