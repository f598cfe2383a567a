"""`horae audit log`: who did what, and whether the log is whole."""

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
    return ", ".join(detail.get("changed", ())) or detail.get("said", "")


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
    """Tell who did what, when and from where, and prove that the log is whole."""


def _filters(command: Any) -> Any:
    """Which rows."""
    options = (
        click.option("--from", "since", type=TIME, help="Not before this."),
        click.option("--to", "until", type=TIME, help="Before this."),
        click.option("--actor", metavar="WHO", help='"key:" and a key\'s id, or "user:" and a name.'),
        click.option("--action", metavar="NAME", help="An operation, jobs.edit, or all of a noun, jobs."),
        click.option("--target", metavar="THING", help="A thing and what it holds, jobs/etl, or all of a noun, jobs."),
    )
    for option in reversed(options):
        command = option(command)
    return command


request(
    log, "audit.log", lists(COLUMNS, "Nobody has changed anything that these filters let through."), name="list",
    called={"since": "--from", "until": "--to"}, examples=("horae audit log list", FILTERED),
)  # fmt: skip


@log.command(examples=("horae audit log export", "horae audit log export --from 2026-11-01T00:00:00Z"))
@_filters
@remote
async def export(api: Api, **asked: Any) -> None:
    """Write what was done as JSON lines, newest first."""
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
    """Check that no row was edited, removed, put elsewhere or cut off.

    Exit 1 names the first row that is not as it was written. Keep the head that this prints in another place: a later
    log that does not contain it was written anew.
    """
    verdict = (await api.client.audit.verify_log()).raw
    if not api.out.is_for_people:
        api.out.document(verdict)
    elif verdict["broken"] is None:
        api.out.say(f"The log is whole: {verdict['rows']:,} rows, head {verdict['head']}.")
        if not verdict["signed"]:
            api.out.say("Its head is not signed: with a secret key (HORAE_SECRET_KEY) a cut end is noticed too.")
    else:
        api.out.say(f"The log is broken at row {verdict['broken']['seq']:,}: {verdict['broken']['reason']}.")
    if verdict["broken"] is not None:
        click.get_current_context().exit(1)
