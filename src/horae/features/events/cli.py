"""`horae events`: send and list events, and create webhooks that send them."""

from typing import Any

import click

from horae.cli.fields import given_by, options_of
from horae.cli.lazy import HoraeGroup
from horae.cli.output import Column, TimeField
from horae.cli.remote import Api, remote
from horae.cli.request import lists, request
from horae.cli.terminal import echo
from horae.cli.values import read_json, read_text
from horae.features.events.model.view import HOOK


@click.group(
    cls=HoraeGroup,
    examples=('horae events send upload --payload \'{"key": "a.csv"}\'', "horae events list --name upload"),
)
def events() -> None:
    """Send and list events; create webhooks."""


@events.command(
    examples=(
        'horae events send upload --payload \'{"key": "a.csv"}\'',
        "horae events send order.paid --payload @order.json --id order-1042",
        "horae events send upload --payload '{\"size\": 5}' --dry-run",
    )
)
@click.argument("name")
@click.option("--payload", metavar="JSON|@FILE", help="The payload of the event; - reads it from stdin.")
@click.option("--id", "id_", metavar="ID", help="An id of the event: a repetition with the same id fires no trigger.")
@click.option(
    "--dry-run", is_flag=True, help="Store no event; show which triggers would fire, and why others would not."
)
@remote
async def send(api: Api, name: str, payload: str | None, id_: str | None, dry_run: bool) -> None:
    """Send an event to all triggers that listen to its name."""
    content = None if payload is None else read_json(payload, "--payload")
    if dry_run:
        return _print_plan(api, (await api.client.events.plan(name, content, id=id_)).raw)
    sent = await api.client.events.send(name, content, id=id_)
    if not api.out.is_for_people:
        return api.out.document(sent.raw)
    for fired in sent.fired:
        later = f": {fired['cause']}" if fired.get("disposition") == "moved" else ""
        echo(f"{fired['executionId']}  {fired['job']} ({fired['trigger']}){later}")
    for skipped in sent.skipped:
        echo(f"{skipped['disposition']}: {skipped['job']} ({skipped['trigger']}): {skipped['cause']}", err=True)
    if sent.note:
        echo(sent.note, err=True)
    return None


def _print_plan(api: Api, plan: dict[str, Any]) -> None:
    if not api.out.is_for_people:
        return api.out.document(plan)
    for one in plan["fires"]:
        later = f": {one['cause']}" if one["disposition"] == "moved" else ""
        echo(f"would fire: {one['job']} ({one['trigger']}){later}")
    for one in plan["skipped"]:
        echo(f"{one['disposition']}: {one['job']} ({one['trigger']}): {one['cause']}")
    if plan["note"]:
        echo(plan["note"], err=True)
    return None


COLUMNS: list[Column] = [
    ("EVENT", "eventId"),
    ("NAME", "name"),
    ("SOURCE", "source"),
    ("RECEIVED", TimeField("receivedAt")),
    ("FIRED", lambda one: ", ".join(f"{fired['job']} ({fired['trigger']})" for fired in one["fired"])),
    ("SKIPPED", lambda one: "; ".join(f"{s['job']} ({s['trigger']}): {s['cause']}" for s in one["skipped"])),
    ("NOTE", "note"),
]
request(
    events, "events.list", lists(COLUMNS, "There are no events. Send one with: horae events send NAME"),
    examples=("horae events list", "horae events list --name upload -o json"),
)  # fmt: skip


@events.command(
    examples=(
        "horae events webhook deploy github",
        "horae events webhook deploy github --secret-file secret.txt --overlap 1h",
    )
)
@click.argument("job")
@click.argument("trigger")
@click.option(
    "--secret-file",
    metavar="FILE",
    help="A file with the sender's secret; - reads it from stdin. By default a secret is generated.",
)
@options_of(HOOK)
@click.option("--end", is_flag=True, help="Remove the webhook at once, instead of creating one.")
@remote
async def webhook(api: Api, job: str, trigger: str, secret_file: str | None, end: bool, **options: Any) -> None:
    """Create the webhook of a trigger, or give it a new secret. URL and secret are shown only now."""
    if end:
        await api.client.events.delete_webhook(job, trigger)
        if not api.out.is_for_people:
            return api.out.document({"job": job, "trigger": trigger, "ended": True})
        return api.out.say(f"Removed the webhook of trigger {trigger} of job {job}.")
    secret = read_text(secret_file).strip() if secret_file is not None else None
    created = await api.client.events.create_webhook(
        job, trigger, secret=secret, **HOOK.keywords(given_by(HOOK, options))
    )
    if not api.out.is_for_people:
        return api.out.document(created.raw)
    for field in ("url", "secret"):
        if field in created.raw:
            echo(f"{field:<8}{created.raw[field]}")
    echo(created.raw["note"], err=True)
    if created.raw.get("oldValidUntil"):
        echo(f"The previous secret or URL is valid until {created.raw['oldValidUntil']}.", err=True)
    return None
