"""`horae namespaces`: tenants with their defaults, quotas and usage."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import click

from horae.cli.fields import NONE, changes_of, option_of, unset_option, values_of, with_options, with_resets
from horae.cli.lazy import HoraeGroup
from horae.cli.output import Column, TimeField
from horae.cli.prompts import prompt
from horae.cli.remote import Api, remote
from horae.cli.request import lists, message, request
from horae.cli.times import SPAN, TIME
from horae.env import SECOND, Micros
from horae.errors import BadInput, HoraeError
from horae.model.admission.quota import QUOTA
from horae.model.tenancy.namespace import NAMESPACE

ERASED = ("executions", "files", "events", "records", "definitions")
# Fields with an option that may give one value for all outcomes.
_BY_OUTCOME = {
    "retention": "How long ended executions are kept: 30d, or success=7d; repeatable; none for the servers' setting.",
    "archive": "Executions to archive after their retention: all, or failed; repeatable; none archives nothing.",
}
_DERIVED = tuple(row for row in NAMESPACE.rows if row.name not in _BY_OUTCOME)
_setting_options = with_options(
    click.option(f"--{row.flag}", multiple=True, metavar=row.field.metavar, help=_BY_OUTCOME[row.name])
    if row.name in _BY_OUTCOME
    else option_of(row, NAMESPACE)
    for row in NAMESPACE.rows
)


@click.group(
    cls=HoraeGroup,
    examples=("horae namespaces create billing --retention success=7d", "horae namespaces list"),
)
def namespaces() -> None:
    """Create, show, erase and delete namespaces; show their quotas and usage."""


@namespaces.command(
    examples=(
        "horae namespaces create billing",
        "horae namespaces create billing --weight 2 --retention success=7d --retention failed=90d",
        "horae namespaces create billing --default retries=3 --default timeout=1h --queue-policy fair",
    )
)
@click.argument("name")
@_setting_options
@remote
async def create(api: Api, name: str, **said: Any) -> None:
    """Create a namespace with its first queue."""
    api.out.one((await api.client.namespaces.create(name, **_changes_of(said))).raw)


COLUMNS: list[Column] = [
    ("NAMESPACE", "name"),
    ("WEIGHT", "weight"),
    ("DESCRIPTION", "description"),
    ("CREATED", TimeField("createdAt")),
]
request(namespaces, "namespaces.list", lists(COLUMNS, "There are no namespaces."), examples=("horae namespaces list",))


@namespaces.command(examples=("horae namespaces show", "horae namespaces show billing -o json"))
@click.argument("name", required=False)
@remote
async def show(api: Api, name: str | None) -> None:
    """Show the settings of a namespace; by default, your own."""
    api.out.one((await api.client.namespaces.get(await _named(api, name))).raw)


@namespaces.command(
    "set",
    examples=(
        "horae namespaces set billing --weight 3",
        "horae namespaces set billing --retention none --default none",
    ),
)
@click.argument("name")
@_setting_options
@unset_option(NAMESPACE.rows)
@remote
async def set_(api: Api, name: str, **said: Any) -> None:
    """Change the settings of a namespace; fields that you do not name stay unchanged."""
    changed = _changes_of(said)
    if not changed:
        raise click.UsageError(
            "There is nothing to change: give --description, --weight, --retention or another option."
        )
    api.out.one((await api.client.namespaces.edit(name, **changed)).raw)


request(
    namespaces, "namespaces.delete", message("Deleted namespace {name}.", deleted=True),
    examples=("horae namespaces delete billing",),
)  # fmt: skip


@namespaces.command(
    examples=(
        "horae namespaces erase billing",
        "horae namespaces erase billing --cancel --definitions --confirm billing",
    )
)
@click.argument("name")
@click.option(
    "--cancel",
    is_flag=True,
    help="Cancel executions that have not ended; without this option, such executions make the command fail.",
)
@click.option(
    "--definitions", is_flag=True, help="Also delete jobs, keys, users and everything else, and the namespace itself."
)
@click.option("--confirm", metavar="NAME", help="The namespace's name again; without this option the command asks.")
@click.option("--timeout", default="10m", type=SPAN, help="The longest wait for cancelled executions; 10m by default.")
@remote
async def erase(api: Api, name: str, cancel: bool, definitions: bool, confirm: str | None, timeout: Micros) -> None:
    """Erase all data of a namespace: executions, logs, files, events, keys.

    Definitions stay, unless --definitions deletes them and the namespace, too; stop the namespace's workers before
    that. Data that arrives during the command may remain, but you can repeat the command. The audit log stores a
    receipt of each part.
    """
    if confirm is None:
        what = "everything in it and the namespace itself" if definitions else "all its data"
        confirm = prompt(f"This erases {what} permanently. Type its name to continue", f"--confirm {name}")
    if confirm != name:
        raise click.UsageError(f"The name differs from {name!r}: nothing was erased.")
    done = await _erased(api, name, cancel, definitions, timeout / SECOND)
    if not api.out.is_for_people:
        return api.out.document(done)
    counts = ", ".join(f"{done[what]:,} {what}" for what in ERASED[:-1])
    ended = f", {done['definitions']:,} definitions and the namespace itself" if definitions else ""
    api.out.say(f"Erased from namespace {name}: {counts}{ended}.")
    return None


async def _erased(api: Api, name: str, cancel: bool, definitions: bool, patience: float) -> dict[str, Any]:
    """Repeat the request until nothing is left: cancelled executions take time to end."""
    counts: Counter[str] = Counter()
    until = api.env.clock.monotonic() + patience
    while True:
        done: dict[str, Any] = (await api.client.namespaces.erase(name, cancel=cancel, definitions=definitions)).raw
        counts.update({what: done[what] for what in ERASED})
        if done["complete"]:
            return {**done, **counts}
        if api.env.clock.monotonic() >= until:
            detail = f"{done['live']:,} executions of namespace {name} were cancelled and have not ended."
            raise HoraeError(detail, "See them with `horae executions list`, and erase again.")
        await api.env.clock.sleep(1.0)


def _changes_of(options: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that the options give."""
    changes = values_of(_DERIVED, options)
    if options["retention"]:
        changes["retention"] = _retention(options["retention"])
    if options["archive"]:
        whole: dict[tuple[str, ...], bool] = {("all",): True, (NONE,): False}
        changes["archive"] = whole.get(options["archive"], list(options["archive"]))
    return with_resets(changes, options)


def _retention(given: Sequence[str]) -> str | dict[str, str] | None:
    if len(given) == 1 and "=" not in given[0]:
        return None if given[0] == NONE else given[0]
    spans = {}
    for text in given:
        outcome, _, spans[outcome] = text.partition("=")
        if not outcome or not spans[outcome]:
            remedy = "Write --retention success=7d --retention failed=90d, or one span for all."
            raise BadInput(f"--retention {text} does not give an outcome and a time.", remedy, field="retention")
    return spans


async def _named(api: Api, name: str | None) -> str:
    return name or await api.client.namespaces.own()


@namespaces.command(
    examples=(
        "horae namespaces quota",
        "horae namespaces quota --queued 100000 --submissions-per-second 500",
        "horae namespaces quota billing --queued none",
    )
)
@click.argument("name", required=False)
@with_options((*(option_of(row, QUOTA) for row in QUOTA.rows), unset_option(QUOTA.rows)))
@remote
async def quota(api: Api, name: str | None, **bounds: Any) -> None:
    """Show the quotas and usage of a namespace, or change the given quotas; `none` removes a quota."""
    name = await _named(api, name)
    changed = changes_of(QUOTA.rows, bounds)
    shown = (await api.client.namespaces.quota(name)).raw
    if changed:
        kept = {field: shown.get(field) for field in QUOTA.names}
        shown = (await api.client.namespaces.set_quota(name, **{**kept, **changed})).raw
    api.out.one(shown)


@namespaces.command(
    examples=("horae namespaces usage", "horae namespaces usage billing --from 2026-11-01T00:00:00Z -o json")
)
@click.argument("name", required=False)
@click.option("--from", "since", type=TIME, help="The first day; thirty days ago by default.")
@click.option("--to", "until", type=TIME, help="The last day; today by default.")
@remote
async def usage(api: Api, name: str | None, since: str | None, until: str | None) -> None:
    """Show the present and daily usage of a namespace, for charge-back."""
    name = await _named(api, name)
    used: dict[str, Any] = (await api.client.namespaces.usage(name, since=since, until=until)).raw
    if not api.out.is_for_people:
        return api.out.document(used)
    over = f" Over its quota: {used['exceeded']}." if used.get("exceeded") else ""
    api.out.say(f"{used['queued']:,} queued, {used['waiting']:,} waiting, {used['running']:,} running.{over}")
    columns: list[Column] = [
        ("DAY", "day"),
        ("EXECUTIONS", "executions"),
        ("WORKER SECONDS", "workerSeconds"),
        ("STORED BYTES", "storedBytes"),
        ("REFUSED", "refused"),
    ]
    api.out.list({"items": used["days"]}, columns, "There was no usage.")
    return None
