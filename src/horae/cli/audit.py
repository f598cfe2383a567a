"""`horae audit`: proofs about a live store."""

from typing import Any

import click

from horae.cli.lazy import Group
from horae.cli.output import Column
from horae.cli.remote import Api, remote


@click.group(cls=Group, examples=("horae audit executions",))
def audit() -> None:
    """Check a live store for executions out of place."""


@audit.command(examples=("horae audit executions", "horae audit executions --repair"))
@click.option("--repair", is_flag=True, help="Queue again what has no owner.")
@remote
async def executions(api: Api, repair: bool) -> None:
    """Check that each execution is in one place and has an owner.

    It lies on one shelf, in one slice, within its parcel; what has not ended has a worker, a queue or a timer. Exit 1
    names those of which that is not so.
    """
    report = (await api.client.audit.executions(repair=repair)).raw
    if api.out.is_for_people:
        _tell(api, report)
    else:
        api.out.document(report)
    if report["findings"]:
        click.get_current_context().exit(1)


def _tell(api: Api, report: dict[str, Any]) -> None:
    shelves = [f"{amount['items']} {shelf}" for shelf, amount in report["shelves"].items()]
    api.out.say(f"Checked {', '.join(shelves) or 'an empty store'}.")
    repaired = report.get("repaired")
    if repaired:
        api.out.say(f"Repaired: {repaired['requeued']} queued again, {repaired['ended']} ended.")
    if not report["findings"]:
        return api.out.say("Every execution is in its place.")
    columns: list[Column] = [
        ("WRONG", "kind"),
        ("SHELF", "shelf"),
        ("PARCEL", "parcel"),
        ("ITEMS", lambda row: f"{row['lo']}..{row['hi'] - 1}"),
        ("WHY", "detail"),
        ("SESSION", "session"),
    ]
    api.out.table(report["findings"], columns)
    total = sum(report["kinds"].values())
    shown = len(report["findings"])
    return api.out.say(f"{total} out of place{f', {shown} shown' if shown < total else ''}. {_advice(repaired)}")


def _advice(repaired: Any) -> str:
    if repaired:
        return "What is on two shelves or outside its parcel is left to people: report it with this output."
    return "`horae audit executions --repair` queues again what has no owner."
