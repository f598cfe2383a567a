"""`horae audit`: consistency checks of a live store, and the audit log."""

from typing import Any

import click

from horae.cli.lazy import ExtensibleGroup
from horae.cli.output import Column
from horae.cli.remote import Api, remote
from horae.cli.times import TIME

FIRES = "horae audit fires daily-report --from 2026-11-01T00:00:00Z --to 2026-11-15T00:00:00Z"


@click.group(cls=ExtensibleGroup, examples=("horae audit log list", "horae audit executions", FIRES))
def audit() -> None:
    """Show the audit log; check executions and fires of a live store."""


@audit.command(examples=("horae audit executions", "horae audit executions --repair"))
@click.option("--repair", is_flag=True, help="Requeue executions that have no owner.")
@remote
async def executions(api: Api, repair: bool) -> None:
    """Check that each execution is stored in exactly one place and has an owner.

    It must be on one shelf, in one slice, within its parcel. If it has not ended, it needs a worker, a queue or a
    timer. A job with all dependencies met must have started. Violations are listed, and the exit code is then 1.
    """
    report = (await api.client.audit.executions(repair=repair)).raw
    if api.out.is_for_people:
        _print_report(api, report)
    else:
        api.out.document(report)
    if report["findings"]:
        click.get_current_context().exit(1)


def _print_report(api: Api, report: dict[str, Any]) -> None:
    shelves = [f"{amount['items']} {shelf}" for shelf, amount in report["shelves"].items()]
    api.out.say(f"Checked {', '.join(shelves) or 'an empty store'}.")
    repaired = report.get("repaired")
    if repaired:
        joins = f", {repaired['joins']} dependents checked again" if repaired.get("joins") else ""
        api.out.say(f"Repaired: {repaired['requeued']} queued again, {repaired['ended']} ended{joins}.")
    if not report["findings"]:
        return api.out.say("Every execution is in its place.")
    columns: list[Column] = [
        ("PROBLEM", "kind"),
        ("SHELF", "shelf"),
        ("PARCEL", "parcel"),
        ("ITEMS", lambda row: f"{row['lo']}..{row['hi'] - 1}"),
        ("WHY", "detail"),
        ("SESSION", "session"),
    ]
    api.out.table(report["findings"], columns)
    total = sum(report["findingsByKind"].values())
    shown = len(report["findings"])
    return api.out.say(
        f"Inconsistencies found: {total}{f', {shown} shown' if shown < total else ''}. {_advice(repaired)}"
    )


def _advice(repaired: Any) -> str:
    if repaired:
        return "Executions on two shelves or outside their parcel need a manual repair: report them with this output."
    return "`horae audit executions --repair` requeues executions that have no owner."


@audit.command(examples=(FIRES, f"{FIRES} -o json"))
@click.argument("job")
@click.option("--from", "since", required=True, type=TIME, help="The start of the range.")
@click.option("--to", "until", required=True, type=TIME, help="The end of the range, exclusive.")
@click.option("--trigger", metavar="NAME", help="Only this trigger of the job.")
@remote
async def fires(api: Api, job: str, since: str, until: str, trigger: str | None) -> None:
    """Check that each fire of a job is accounted for exactly once.

    The nominal fires of the job's triggers are computed again and compared with the ledger. If each has exactly one
    row, their number is printed. Otherwise, fires without a row, or with two, are listed, and the exit code is 1.
    """
    report = (await api.client.audit.fires(job, since, until, trigger=trigger)).raw
    if api.out.is_for_people:
        _print_fires(api, report)
    else:
        api.out.document(report)
    if report["findings"]:
        click.get_current_context().exit(1)


def _print_fires(api: Api, report: dict[str, Any]) -> None:
    counts = ", ".join(f"{count:,} {disposition}" for disposition, count in sorted(report["dispositions"].items()))
    many = f"{report['fires']:,} fire{'' if report['fires'] == 1 else 's'}"
    fate = "accounted for exactly once" if not report["findings"] else "in the ledger"
    api.out.say(f"{many} of {report['jobName']} {fate}{f': {counts}' if counts else ''}.")
    if report["undecided"]:
        api.out.say(f"{report['undecided']:,} fires are not decided yet.")
    for note in report["notes"]:
        api.out.say(note)
    if not report["findings"]:
        return
    columns: list[Column] = [
        ("PROBLEM", "kind"),
        ("TRIGGER", "trigger"),
        ("FIRES", "fires"),
        ("INSTANTS", lambda one: one.get("detail") or " ".join(one["instants"])),
    ]
    api.out.table(report["findings"], columns)
    if report["unlistedFires"]:
        api.out.say(f"{report['unlistedFires']:,} more fires are not listed.")
