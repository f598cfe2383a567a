"""`horae executions`: list, show, follow, signal and cancel."""

import json
from typing import Any

import click

from horae.cli.executions.waiting import OpenLines, exit_by, finish, in_time, show_lines, timeout_option
from horae.cli.lazy import ExtensibleGroup
from horae.cli.output import Column, TimeField
from horae.cli.remote import Api, page_options, remote
from horae.cli.request import lists, request
from horae.cli.terminal import echo
from horae.cli.times import TIME
from horae.cli.values import read_json
from horae.cli.workflows import add_commands
from horae.env import Micros
from horae.errors import BadInput
from horae.model.executions.output.log_level import LEVELS

EXPORTED = 1000  # executions per request
NOT_ARCHIVED = (
    "The archive has no such executions. To archive all executions: horae namespaces set NAMESPACE --archive all"
)
STATUSES = ("pending", "waiting", "queued", "running", "success", "failed", "cancelled", "skipped")


@click.group(
    cls=ExtensibleGroup, examples=("horae executions list --status failed", "horae executions logs -f EXECUTION")
)
def executions() -> None:
    """List, follow, signal and cancel executions."""


@executions.command(
    "list", examples=("horae executions list", "horae executions list --job daily-report --status failed -o json")
)
@click.option(
    "--status", type=click.Choice(STATUSES), help="Only executions in this state; pending means waiting or queued."
)
@click.option("--job", metavar="JOB", help="Only executions of this job, by name or id.")
@click.option("--queue", metavar="QUEUE", help="Only executions of this queue.")
@click.option("--worker", metavar="WORKER", help="Only executions that this worker runs or ran.")
@click.option("--tag", metavar="NAME[=VALUE]", help="Only executions with this tag.")
@click.option("--since", type=TIME, help="Only executions created at this time or later.")
@click.option("--until", type=TIME, help="Only executions created before this time.")
@click.option("--archive", is_flag=True, help="List executions in the archive, after their retention.")
@page_options
@remote
async def list_(api: Api, archive: bool, **filters: Any) -> None:
    """List executions, newest first."""
    if archive:
        page = await api.client.executions.archived(**_of_archive(filters))
        api.out.list(page.raw, COLUMNS, NOT_ARCHIVED)
        _print_unread(page.raw)
        return
    page = await api.client.executions.list(**filters)
    api.out.list(page.raw, COLUMNS, "There are no such executions. Create one with: horae jobs trigger JOB")


def _of_archive(filters: dict[str, Any]) -> dict[str, Any]:
    """Return the filters for the archive; raise BadInput for a filter that it does not support."""
    unsupported = {"queue", "worker"} & {name for name, value in filters.items() if value is not None}
    if unsupported:
        name = min(unsupported)
        raise BadInput(
            f"The archive cannot be filtered by --{name}.", "Use --job, --status, --tag, --since and --until."
        )
    return {name: value for name, value in filters.items() if name not in ("queue", "worker")}


@executions.command(
    examples=(
        "horae executions export --since 2026-11-01T00:00:00Z",
        "horae executions export --archive --job billing --status failed",
    )
)
@click.option(
    "--status", type=click.Choice(STATUSES), help="Only executions in this state; pending means waiting or queued."
)
@click.option("--job", metavar="JOB", help="Only executions of this job, by name or id.")
@click.option("--tag", metavar="NAME[=VALUE]", help="Only executions with this tag.")
@click.option("--since", type=TIME, help="Only executions created at this time or later.")
@click.option("--until", type=TIME, help="Only executions created before this time.")
@click.option("--archive", is_flag=True, help="Export executions in the archive, after their retention.")
@remote
async def export(api: Api, archive: bool, **filters: Any) -> None:
    """Write executions as JSON lines, newest first: one document per line, as in lists.

    Files of the archive that cannot be read are named on stderr. The executions in the other files are written, and the
    exit code is 1.
    """
    ask = api.client.executions.archived if archive else api.client.executions.list
    cursor: str | None = None
    unread = False
    while True:
        page = await ask(limit=EXPORTED, cursor=cursor, **filters)
        for item in page.raw["items"]:
            echo(json.dumps(item, ensure_ascii=False, separators=(",", ":")))
        unread |= _print_unread(page.raw)
        cursor = page.raw["nextCursor"]
        if cursor is None:
            break
    if unread:
        click.get_current_context().exit(1)


def _print_unread(document: dict[str, Any]) -> bool:
    """Print the archive's unreadable files, and return whether there are any."""
    notes = document.get("notes", [])
    for note in notes:
        echo(f"Incomplete: {note}", err=True)
    return bool(notes)


COLUMNS: list[Column] = [
    ("EXECUTION", "executionId"),
    ("JOB", lambda one: one.get("jobName") or one.get("jobId")),
    ("STATUS", "status"),
    ("SCHEDULED", TimeField("scheduledAt")),
    ("STARTED", TimeField("startedAt")),
    ("ENDED", TimeField("completedAt")),
    ("ATTEMPT", "attempt"),
    ("ERROR", lambda one: (one.get("errorMessage") or "").partition("\n")[0][:80]),
]


@executions.command(examples=("horae executions show EXECUTION", "horae executions show EXECUTION --wait -o json"))
@click.argument("execution")
@click.option(
    "-w", "--wait", is_flag=True, help="Wait until the execution ends; exit 1 unless it succeeds or is skipped."
)
@timeout_option
@remote
async def show(api: Api, execution: str, wait: bool, timeout: Micros | None) -> None:
    """Show an execution."""
    found = await api.client.executions.get(execution)
    if wait or timeout is not None:
        return await finish(api, found, timeout=timeout)
    api.out.one(found.raw, leave_out=("error",))
    traceback = found.error.traceback if found.error else ""
    if traceback and api.out.is_for_people:
        echo(f"\n{traceback.rstrip()}")
    return None


@executions.command(examples=("horae executions cancel EXECUTION", "horae executions cancel EXECUTION --wait"))
@click.argument("execution")
@click.option("--reason", metavar="TEXT", help="The reason; it is stored with the execution.")
@click.option("-w", "--wait", is_flag=True, help="Wait until the execution has stopped.")
@timeout_option
@remote
async def cancel(api: Api, execution: str, reason: str | None, wait: bool, timeout: Micros | None) -> None:
    """Cancel an execution. A running execution is asked to stop, and killed after the grace time."""
    cancelled = await api.client.executions.cancel(execution, reason=reason)
    document = cancelled.raw
    if (wait or timeout is not None) and not cancelled.execution.is_final:
        final = await in_time(api, api.client.executions.wait(execution), timeout, execution)
        document = {**document, "execution": final.raw}
    if not api.out.is_for_people:
        return api.out.document(document)
    status = document["execution"]["status"]
    asked = cancelled.outcome == "requested" and status == "running"
    who = "its steps have" if document["execution"].get("reason") == "children" else "its worker has"
    api.out.say(f"Execution {execution}: {f'{who} been asked to stop' if asked else status}.")
    return None


@executions.command(
    examples=(
        "horae executions signal EXECUTION approved",
        """horae executions signal EXECUTION approved --payload '{"by": "ada"}'""",
    )
)
@click.argument("execution")
@click.argument("name")
@click.option(
    "--payload",
    metavar="JSON",
    help="The payload for the execution; @FILE reads it from a file, - from the input.",
)
@click.option("--key", metavar="KEY", help="Deliver the signal once, even if the command is repeated with this key.")
@remote
async def signal(api: Api, execution: str, name: str, payload: str | None, key: str | None) -> None:
    """Send a signal to an execution that waits, or will wait, for it."""
    content = None if payload is None else read_json(payload, "--payload")
    sent = await api.client.executions.signal(execution, name, content, key=key)
    if not api.out.is_for_people:
        return api.out.document(sent.raw)
    became = "was delivered" if sent.delivered else "is stored until the execution waits for it"
    api.out.say(f"The signal {name} {became}.")
    return None


@executions.command(
    examples=(
        "horae executions logs EXECUTION",
        "horae executions logs -f EXECUTION",
        "horae executions logs EXECUTION --grep 'timeout*ms' --level warning",
    )
)
@click.argument("execution")
@click.option(
    "-f", "--follow", is_flag=True, help="Continue until the execution ends; exit 1 unless it succeeds or is skipped."
)
@click.option("--tail", type=click.IntRange(1, 10_000), metavar="N", help="Start with the last N lines.")
@click.option("--attempt", type=click.IntRange(1), metavar="N", help="Only the lines of this attempt.")
@click.option(
    "--grep",
    metavar="TEXT",
    help="Only lines with this text, in upper or lower case; * is a wildcard; re:PATTERN is a regular expression.",
)
@click.option("--level", type=click.Choice(LEVELS), help="Only lines of this level or higher.")
@remote
async def logs(api: Api, execution: str, follow: bool, **wanted: Any) -> None:
    """Show the log of an execution."""
    found: list[Any] = []
    live = OpenLines(api)
    async for page in api.client.executions.log_pages(execution, follow=follow, on_open=live.show, **wanted):
        live.clear()
        if api.out.is_for_people:
            show_lines(api, page)
        else:
            found += [line.raw for line in page]
    live.clear()
    if not api.out.is_for_people:
        api.out.document({"items": found})
    if follow:
        exit_by(await api.client.executions.get(execution))


ATTEMPTS: list[Column] = [
    ("ATTEMPT", "attempt"),
    ("STATUS", "outcome"),
    ("WORKER", "workerId"),
    ("STARTED", TimeField("startedAt")),
    ("ENDED", TimeField("endedAt")),
    ("EXIT", "exitCode"),
    ("ERROR", lambda one: (one.get("errorMessage") or "").partition("\n")[0][:80]),
]
request(
    executions, "executions.attempts", lists(ATTEMPTS, "The execution has no attempts yet."),
    called={"execution_id": "execution"}, examples=("horae executions attempts EXECUTION",),
)  # fmt: skip


add_commands(executions)
