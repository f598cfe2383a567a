"""`horae jobs`: create, change, delete, restore and trigger jobs."""

from typing import Any

import click

from horae.cli.definitions.definition import (
    definition_options,
    editable,
    errors_in_flags,
    hidden_defaults,
    read_definition,
    unset,
)
from horae.cli.definitions.versions import COMMANDS, show_plan
from horae.cli.executions.waiting import finish, show_hint, timeout_option
from horae.cli.fields import option_of, values_of, with_options
from horae.cli.lazy import ExtensibleGroup
from horae.cli.output import Column, TimeField, as_yaml
from horae.cli.prompts import confirm
from horae.cli.remote import Api, remote
from horae.cli.request import lists, message, request
from horae.cli.values import params as read_params
from horae.cli.workflows import grid
from horae.client.submission_options import OF_ONE
from horae.env import Micros
from horae.errors import BadInput, NotFound
from horae.feature import installed, load
from horae.model.documents import yaml_text
from horae.model.fleet.submit import SUBMISSION
from horae.model.tenancy.namespace import with_defaults

dry_run_option = click.option(
    "--dry-run", is_flag=True, help="Write nothing; show what would change, or what is wrong."
)


@click.group(cls=ExtensibleGroup, examples=("horae jobs list", "horae jobs trigger daily-report --wait"))
def jobs() -> None:
    """Create, list, change and trigger jobs."""


for command in (*COMMANDS, grid):
    jobs.add_command(command)


@jobs.command(
    examples=(
        "horae jobs create daily-report --command 'python report.py' --schedule '0 0 * * *' --retries 3 --timeout 1h",
        "horae jobs create digest --python digest --every 5m --param limit=10",
        "horae jobs create ping --http https://example.com/health --method GET --every 1m",
        "horae jobs create -f report.yaml --dry-run",
        "horae jobs create -f report.yaml",
    )
)
@click.argument("name", required=False)
@definition_options
@dry_run_option
@remote
async def create(api: Api, name: str | None, dry_run: bool, **options: Any) -> None:
    """Create a job from options or from a file."""
    document = read_definition(name, options)
    if "name" not in document:
        raise click.UsageError("A job needs a name: horae jobs create NAME ...")
    with errors_in_flags(options):
        if dry_run:
            return show_plan(api, await api.client.jobs.plan(document), "would be created")
        job = await api.client.jobs.create(**document)
    if not api.out.is_for_people:
        return api.out.document(job.raw)
    api.out.say(f"Created job {job.name} ({job.job_id}), {job.status}.")
    for note in job.raw.get("notes") or []:
        api.out.say(note)
    return None


COLUMNS: list[Column] = [
    ("NAME", "name"),
    ("STATUS", "status"),
    ("SCHEDULE", lambda job: job.get("scheduleText") or job.get("schedule")),
    ("NEXT", TimeField("nextFireAt")),
    ("LAST", lambda job: (job.get("lastExecution") or {}).get("status")),
    ("ID", "jobId"),
]
JOB = {"ref": "job"}
request(
    jobs, "jobs.list",
    lists(COLUMNS, "There are no jobs. Create one with: horae jobs create hello --command 'echo hello'"),
    examples=("horae jobs list", "horae jobs list --state paused", "horae jobs list -o json"),
)  # fmt: skip


@jobs.command(examples=("horae jobs show daily-report", "horae jobs show daily-report -o yaml"))
@click.argument("job")
@remote
async def show(api: Api, job: str) -> None:
    """Show a job by name or id."""
    api.out.one((await api.client.jobs.get(job)).raw)
    if api.out.is_for_people:
        for feature in installed():
            if feature.show_job:
                await load(feature.show_job)(api, job)


@jobs.command(
    examples=(
        "horae jobs edit daily-report --retries 5",
        "horae jobs edit daily-report --schedule '0 6 * * *' --tz Europe/Paris",
        "horae jobs edit daily-report --timeout none --unset priority",
        "horae jobs edit daily-report",
    )
)
@click.argument("job")
@definition_options
@unset
@click.option("--if-version", type=click.IntRange(1), metavar="N", help="Only if the job is still at this version.")
@dry_run_option
@remote
async def edit(api: Api, job: str, if_version: int | None, dry_run: bool, **options: Any) -> None:
    """Change a job: by options, from a file or, without either, in your editor. Each change creates a new version."""
    changes = read_definition(None, options)
    before = await api.client.jobs.get(job)
    match = f'"{if_version}"' if if_version else None
    if changes and not options["file"]:
        with errors_in_flags(options):
            if dry_run:
                plan = await api.client.jobs.plan(changes, job, patch=True, if_match=match)
                return show_plan(api, plan, "would change")
            after = await api.client.jobs.edit(job, if_match=match, **changes)
    else:
        document = changes or with_defaults(_in_editor(editable(before.raw)), hidden_defaults(before.raw))
        match = match or f'"{before.version}"'
        if dry_run:
            return show_plan(api, await api.client.jobs.plan(document, job, if_match=match), "would change")
        after = await api.client.jobs.replace(job, document, if_match=match)
    if not api.out.is_for_people:
        return api.out.document(after.raw)
    if after.version == before.version:
        api.out.say(f"Job {after.name} is unchanged, at version {after.version}.")
    else:
        api.out.say(f"Changed job {after.name}: version {before.version} became {after.version}.")
    return None


def _in_editor(document: dict[str, Any]) -> dict[str, Any]:
    text = click.edit(as_yaml(document), extension=".yaml")
    if text is None:
        raise BadInput("Nothing was saved, so nothing was changed.", "Give options instead: horae jobs edit --help")
    try:
        edited = [document.value for document in yaml_text.read_documents(text)]
    except BadInput as error:
        raise BadInput(f"The saved text is not valid YAML: {error.detail}", "Nothing was changed.") from None
    if len(edited) != 1 or not isinstance(edited[0], dict):
        raise BadInput("The saved text is not a job's definition.", "Nothing was changed.")
    return edited[0]


request(
    jobs, "jobs.pause", message("Paused job {name}. Resume it with: horae jobs resume {name}"), called=JOB,
    examples=("horae jobs pause daily-report",),
)  # fmt: skip


request(
    jobs,
    "jobs.resume",
    message("Resumed job {name}, {status}."),
    called=JOB,
    examples=("horae jobs resume daily-report",),
)


@jobs.command(
    examples=(
        "horae jobs delete daily-report",
        "horae jobs delete daily-report --queued finish",
        "horae jobs delete --tag demo --yes",
    )
)
@click.argument("job", nargs=-1)
@click.option("--tag", metavar="NAME[=VALUE]", help="All jobs with this tag; the jobs of the demo have `demo`.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation when deleting by tag.")
@click.option(
    "--queued", type=click.Choice(["cancel", "finish"]), help="Cancel or finish queued executions; cancel by default."
)
@click.option(
    "--running", type=click.Choice(["cancel", "finish"]), help="Cancel or finish running executions; finish by default."
)
@click.option("--force", is_flag=True, default=None, help="Delete the job even if workflows use it.")
@remote
async def delete(api: Api, job: tuple[str, ...], tag: str | None, yes: bool, **how: Any) -> None:
    """Delete jobs: their triggers stop at once, their history stays, and their names are free again."""
    if bool(job) == bool(tag):
        raise click.UsageError("Name the jobs to delete, or give --tag.")
    deleted = []
    try:
        for one in job if tag is None else await _tagged(api, tag, yes):
            deleted.append(info := await api.client.jobs.delete(one, **how))
            if api.out.is_for_people:
                api.out.say(f"Deleted job {info.name}. Undo it with: horae jobs restore {info.job_id}")
    finally:
        if deleted and not api.out.is_for_people:
            api.out.document(deleted[0].raw if len(job) == 1 else {"items": [info.raw for info in deleted]})


async def _tagged(api: Api, tag: str, yes: bool) -> list[str]:
    """Return the names of the jobs with a tag, after a confirmation."""
    page = await api.client.jobs.list(tag=tag, limit=1000)
    names = [found.name for found in page]
    while page.next_cursor:
        page = await api.client.jobs.list(tag=tag, limit=1000, cursor=page.next_cursor)
        names += [found.name for found in page]
    if not names:
        raise NotFound(f"No job has the tag {tag!r}.", "See `horae jobs list`.")
    if not yes:
        confirm(f"Delete {', '.join(names)}?")
    return names


request(
    jobs,
    "jobs.restore",
    message("Restored job {name}, {status}."),
    called=JOB,
    examples=("horae jobs restore daily-report",),
)


@jobs.command(
    examples=(
        "horae jobs trigger daily-report",
        "horae jobs trigger daily-report --wait --param day=2026-11-15",
        "horae jobs trigger daily-report --delay 10m --key report-2026-11-15 --priority 9",
    )
)
@click.argument("job")
@click.option(
    "--param",
    multiple=True,
    metavar="NAME=VALUE",
    help="A parameter; a value that is valid JSON is read as JSON; repeatable.",
)
@click.option(
    "--params",
    metavar="JSON",
    help="All parameters as one JSON object; @FILE reads it from a file, - from the input.",
)
@with_options([option_of(row, SUBMISSION) for row in OF_ONE.values()])
@click.option(
    "-w", "--wait", is_flag=True, help="Wait until the execution ends; exit 1 unless it succeeds or is skipped."
)
@click.option("-f", "--follow", is_flag=True, help="Show the log while the execution runs, and wait until it ends.")
@timeout_option
@remote
async def trigger(
    api: Api,
    job: str,
    param: tuple[str, ...],
    params: str | None,
    wait: bool,
    follow: bool,
    timeout: Micros | None,
    **how: Any,
) -> None:
    """Run a job now, or at a later time."""
    submission = SUBMISSION.keywords(values_of(OF_ONE.values(), how))
    submission["interval"] = _interval(how["interval"])
    execution = await api.client.jobs.trigger(job, read_params(param, params), **submission)
    if wait or follow or timeout is not None:
        return await finish(api, execution, follow=follow, timeout=timeout)
    already = " already" if execution.deduplicated or execution.cached else ""
    sentences = (f"Execution {execution.id} is{already} {execution.status}.", execution.note, execution.warning)
    _print(api, execution.raw, " ".join(filter(None, sentences)))
    if api.out.is_for_people:
        await show_hint(api, execution.id)
    return None


def _interval(text: str | None) -> tuple[str, str] | None:
    if text is None:
        return None
    start, slash, end = text.partition("/")
    if not slash:
        raise BadInput(f"--interval: {text!r} has no end.", "Write START/END.", field="interval")
    return start, end


@jobs.command("forget-results", examples=("horae jobs forget-results daily-report",))
@click.argument("job")
@remote
async def forget_results(api: Api, job: str) -> None:
    """Delete the cached results of a job, so that they answer no further submission."""
    count = await api.client.jobs.forget_results(job)
    _print(api, {"forgotten": count}, f"Deleted {count} cached results.")


@jobs.command(examples=("horae jobs dependencies daily-report", "horae jobs dependencies daily-report -o json"))
@click.argument("job")
@remote
async def dependencies(api: Api, job: str) -> None:
    """Show the dependencies of a job and their states, its waiting executions, and the jobs that depend on it."""
    found = (await api.client.jobs.dependencies(job)).raw
    if not api.out.is_for_people:
        return api.out.document(found)
    needed: list[Column] = [
        ("DEPENDS ON", "job"),
        ("CONDITION", "condition"),
        ("STATE", "state"),
        ("UNUSED", "unusedExecutions"),
    ]
    api.out.list({"items": found["dependencies"]}, needed, "The job depends on no other job.")
    if found["joins"]:
        columns: list[Column] = [
            ("INTERVAL", lambda join: (join.get("interval") or {}).get("start")),
            ("STATE", "state"),
            ("EXECUTION", "executionId"),
            ("UPSTREAM", lambda join: ", ".join(f"{part['job']} {part['state']}" for part in join["upstream"])),
        ]
        api.out.list({"items": found["joins"]}, columns, "")
    if found["dependents"]:
        api.out.say(f"Jobs that depend on this job: {', '.join(found['dependents'])}.")
    for note in found["notes"]:
        api.out.say(note)
    return None


LIMITS: list[Column] = [
    ("KIND", "kind"),
    ("KEY", "key"),
    ("VALUE", "value"),
    ("HELD", lambda held: f"{held['used']}/{'-' if held['concurrency'] is None else held['concurrency']}"),
    ("WAITERS", lambda held: "yes" if held["hasWaiters"] else ""),
    ("BY", lambda held: ", ".join(held["holders"])),
]
request(
    jobs, "jobs.limits", lists(LIMITS, "No execution holds a limit or a turn of this job."), called=JOB,
    examples=("horae jobs limits sync", "horae jobs limits sync -o json"),
)  # fmt: skip


def _print(api: Api, document: dict[str, Any], sentence: str) -> None:
    if api.out.is_for_people:
        api.out.say(sentence)
    else:
        api.out.document(document)
