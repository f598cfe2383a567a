"""`horae namespaces`: what each may have and use, and what it used."""

from typing import Any

import click

from horae.cli.lazy import Group
from horae.cli.output import Column
from horae.cli.remote import Api, remote
from horae.errors import BadInput

_BOUNDS = {
    "queued": "queued",
    "running": "running",
    "executions_per_day": "executionsPerDay",
    "worker_seconds_per_day": "workerSecondsPerDay",
    "stored_bytes_per_day": "storedBytesPerDay",
    "submissions_per_second": "submissionsPerSecond",
    "starts_per_second": "startsPerSecond",
}
_NONE = "none"


@click.group(cls=Group, examples=("horae namespaces list", "horae namespaces usage", "horae namespaces quota"))
def namespaces() -> None:
    """Show what namespaces may have and use, and what they used."""


@namespaces.command("list", examples=("horae namespaces list",))
@remote
async def list_(api: Api) -> None:
    """List the namespaces that this key is for."""
    page = await api.client.namespaces.list()
    columns: list[Column] = [("NAMESPACE", "name"), ("CREATED", lambda one: api.out.age(one.get("createdAt")))]
    api.out.list(page.raw, columns, "There are none.")


@namespaces.command(
    examples=(
        "horae namespaces quota",
        "horae namespaces quota --queued 100000 --submissions-per-second 500",
        "horae namespaces quota default --queued none",
    )
)
@click.argument("name", default="default")
@click.option("--queued", metavar="N", help="Executions that may be queued, or wait to be.")
@click.option("--running", metavar="N", help="Executions that may run at once.")
@click.option("--executions-per-day", metavar="N", help="Executions that may be made in a day of UTC.")
@click.option("--worker-seconds-per-day", metavar="N", help="Seconds of workers that a day's executions may take.")
@click.option("--stored-bytes-per-day", metavar="N", help="Bytes of params and results that a day may add.")
@click.option("--submissions-per-second", metavar="N", help="How fast executions may be submitted.")
@click.option("--starts-per-second", metavar="N", help="How fast executions may start.")
@click.option("--over", type=click.Choice(("refuse", "wait")), help="What becomes of what goes over it.")
@remote
async def quota(api: Api, name: str, over: str | None, **bounds: str | None) -> None:
    """Show what a namespace may have and use, or change the bounds that are given; `none` takes one away."""
    changed: dict[str, Any] = {
        _BOUNDS[field]: _number(text, field) for field, text in bounds.items() if text is not None
    }
    if over is not None:
        changed["over"] = over
    shown = (await api.client.namespaces.quota(name)).raw
    if changed:
        kept = {field: shown.get(field) for field in (*_BOUNDS.values(), "over")}
        shown = (await api.client.namespaces.set_quota(name, **{**kept, **changed})).raw
    api.out.one(shown)


def _number(text: str, field: str) -> float | int | None:
    if text == _NONE:
        return None
    try:
        return float(text) if "." in text else int(text)
    except ValueError:
        option = f"--{field.replace('_', '-')}"
        raise BadInput(f"{option}: {text!r} is not a number.", f"Write a number, or {_NONE}.", field=field) from None


@namespaces.command(
    examples=("horae namespaces usage", "horae namespaces usage default --from 2026-11-01T00:00:00Z -o json")
)
@click.argument("name", default="default")
@click.option("--from", "since", metavar="TIME", help="Not before the day of this; thirty days ago otherwise.")
@click.option("--to", "until", metavar="TIME", help="Up to the day before this ends; today otherwise.")
@remote
async def usage(api: Api, name: str, since: str | None, until: str | None) -> None:
    """Show what a namespace has now and used by day, for charge-back."""
    used: dict[str, Any] = (await api.client.namespaces.usage(name, since=since, until=until)).raw
    if not api.out.is_for_people:
        return api.out.document(used)
    over = f" Over its quota: {used['over']}." if used.get("over") else ""
    api.out.say(f"{used['queued']:,} queued, {used['waiting']:,} waiting, {used['running']:,} running.{over}")
    columns: list[Column] = [
        ("DAY", "day"),
        ("EXECUTIONS", "executions"),
        ("WORKER SECONDS", "workerSeconds"),
        ("STORED BYTES", "storedBytes"),
        ("REFUSED", "refused"),
    ]
    api.out.list({"items": used["days"]}, columns, "Nothing was used.")
    return None
