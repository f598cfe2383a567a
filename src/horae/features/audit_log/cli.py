"""`horae audit log`: the audit log and the check of its integrity."""

from typing import Any

import click
import msgspec

from horae.cli.lazy import HoraeGroup
from horae.cli.output import Column
from horae.cli.remote import Api, remote
from horae.cli.request import lists, request
from horae.cli.terminal import echo
from horae.cli.times import TIME

FILTERED = "horae audit log list --target jobs/nightly-report"
MOST_AT_ONCE = 1000


def _changed(row: dict[str, Any]) -> str:
    detail = row["detail"]
    return ", ".join(detail.get("changed", ())) or detail.get("error", "")


COLUMNS: list[Column] = [
    ("ROW", "seq"),
    ("WHEN", "at"),
    ("WHO", lambda row: row["actorName"] or row["actor"]),
    ("FROM", "address"),
    ("ACTION", "action"),
    ("TARGET", "target"),
    ("OUTCOME", "outcome"),
    ("CHANGED", _changed),
]


@click.group(cls=HoraeGroup, examples=("horae audit log list", "horae audit log verify"))
def log() -> None:
    """Show the audit log: who did what, when and from where; check its integrity."""


def _filters(command: Any) -> Any:
    """Add the options that select rows."""
    options = (
        click.option("--from", "since", type=TIME, help="Only rows from this time on."),
        click.option("--to", "until", type=TIME, help="Only rows before this time."),
        click.option("--actor", metavar="WHO", help='Only this actor: "key:" and a key\'s id, or "user:" and a name.'),
        click.option(
            "--action",
            metavar="NAME",
            help='Only this operation, such as jobs.edit, or, with a dot at the end, all such operations: "jobs.".',
        ),
        click.option(
            "--target",
            metavar="THING",
            help="Only this object and its parts, such as jobs/etl, or all objects of a kind, such as jobs.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


request(
    log, "audit.log", lists(COLUMNS, "No rows match these filters."), name="list",
    called={"since": "--from", "until": "--to"}, examples=("horae audit log list", FILTERED),
)  # fmt: skip


@log.command(examples=("horae audit log export", "horae audit log export --from 2026-11-01T00:00:00Z"))
@_filters
@remote
async def export(api: Api, **asked: Any) -> None:
    """Write rows as JSON lines, newest first."""
    cursor: str | None = None
    while True:
        page = await api.client.audit.log(**asked, limit=MOST_AT_ONCE, cursor=cursor)
        for row in page:
            echo(msgspec.json.encode(row.raw))
        cursor = page.next_cursor
        if cursor is None:
            return


@log.command(examples=("horae audit log verify", "horae audit log verify -o json"))
@remote
async def verify(api: Api) -> None:
    """Check that no row was edited, removed, moved or cut off.

    If the log was changed, the exit code is 1, and the output names the first row that differs from the original. Keep
    the printed head in another place: if a later log does not contain it, the log was rewritten.
    """
    verdict = (await api.client.audit.verify_log()).raw
    if not api.out.is_for_people:
        api.out.document(verdict)
    elif verdict["broken"] is None:
        api.out.say(f"The log is intact: {verdict['rows']:,} rows, head {verdict['head']}.")
        if not verdict["signed"]:
            api.out.say(
                "Its head is not signed, so removed rows at the end are not noticed. To sign it, set HORAE_MASTER_KEY."
            )
    else:
        api.out.say(f"The log is broken at row {verdict['broken']['seq']:,}: {verdict['broken']['reason']}.")
    if verdict["broken"] is not None:
        click.get_current_context().exit(1)
