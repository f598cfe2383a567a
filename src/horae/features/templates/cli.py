"""`horae templates`: definitions with parameters, from which jobs are created."""

import click

from horae.cli.definitions.versions import diff_lines
from horae.cli.lazy import HoraeGroup
from horae.cli.output import Column, TimeField
from horae.cli.remote import Api, remote
from horae.cli.request import Given, lists, message, request
from horae.cli.terminal import echo, style
from horae.cli.values import read_one
from horae.features.templates.client import TemplateInfo


@click.group(
    cls=HoraeGroup,
    examples=("horae templates put backup -f backup.yaml", "horae templates put backup -f backup.yaml --dry-run"),
)
def templates() -> None:
    """Write, list and delete templates of jobs; show the effect of a change."""


@templates.command(
    examples=("horae templates put backup -f backup.yaml", "horae templates put -f backup.yaml --dry-run")
)
@click.argument("name", required=False)
@click.option(
    "-f", "--file", required=True, metavar="FILE", help="Read the template from a YAML or JSON file; - is stdin."
)
@click.option("--dry-run", is_flag=True, help="Change nothing; show the changes of jobs created from it.")
@click.option(
    "--if-version", type=click.IntRange(1), metavar="N", help="Only if the template is still at this version."
)
@remote
async def put(api: Api, name: str | None, file: str, dry_run: bool, if_version: int | None) -> None:
    """Create a template, or change it with all jobs that were created from it."""
    document = read_one(file, "template", "with `parameters` and a `job`")
    called = name or document.get("name")
    if not called:
        raise click.UsageError("A template needs a name: horae templates put NAME -f FILE")
    match = None if if_version is None else f'"{if_version}"'
    done = await api.client.templates.put(called, document, if_match=match, dry_run=dry_run)
    if not api.out.is_for_people:
        return api.out.document(done.raw)
    return _print_changes(api, done, dry_run=dry_run)


def _print_changes(api: Api, done: TemplateInfo, *, dry_run: bool) -> None:
    for one in done.affected:
        api.out.say(f"{one['job']}: {one['error']}" if one.get("error") else f"{one['job']}:")
        for line in diff_lines(one["changes"]):
            echo("  " + style(line, fg={"-": "red", "+": "green"}.get(line[:1])), styled=True)
    broken = sum(one.get("error") is not None for one in done.affected)
    jobs = _jobs(len(done.affected))
    if not dry_run:
        api.out.say(f"Template {done.name} is at version {done.version}; {jobs} changed with it.")
    elif broken:
        why = f"{_jobs(broken)} could no longer be made from it"
        api.out.say(f"Version {done.version} of template {done.name} would be refused: {why}. Nothing was changed.")
    else:
        api.out.say(f"Version {done.version} of template {done.name} would change {jobs}. Nothing was changed.")


def _jobs(count: int) -> str:
    return f"{count} job{'' if count == 1 else 's'}"


VERSIONS: list[Column] = [
    ("VERSION", "version"),
    ("CREATED", TimeField("updatedAt")),
    ("PARAMETERS", lambda one: ", ".join(one["parameters"])),
    ("DESCRIPTION", "description"),
]
COLUMNS: list[Column] = [("NAME", "name"), VERSIONS[0], *VERSIONS[2:], ("UPDATED", TimeField("updatedAt"))]


def _show(api: Api, template: TemplateInfo, given: Given) -> None:
    api.out.one(template.raw, leave_out=("affected", "dryRun"))


request(
    templates, "templates.list",
    lists(COLUMNS, "There are no templates. Write one with: horae templates put NAME -f FILE"),
    examples=("horae templates list", "horae templates list -o json"),
)  # fmt: skip


request(
    templates, "templates.get", _show, name="show",
    examples=("horae templates show backup", "horae templates show backup -o yaml"),
)  # fmt: skip


request(
    templates, "templates.versions", lists(VERSIONS, "There are no versions."),
    examples=("horae templates versions backup",),
)  # fmt: skip


request(
    templates, "templates.delete", message("Deleted template {name}.", deleted=True),
    examples=("horae templates delete backup",),
)  # fmt: skip
