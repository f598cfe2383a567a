"""`horae queues`: queues with their policies, holds and maintenance windows, during which no execution starts."""

from typing import Any

import click

from horae.cli.admission.queue_policy import definition_of, definition_options
from horae.cli.executions.waiting import in_time
from horae.cli.lazy import HoraeGroup
from horae.cli.output import Column
from horae.cli.prompts import confirm
from horae.cli.remote import Api, remote
from horae.cli.request import Given, lists, request
from horae.cli.terminal import echo
from horae.cli.times import SPAN, TIME
from horae.client.kernel.queues import HoldInfo
from horae.client.views import ApiDocument
from horae.env import Micros
from horae.model.admission.queue import QUEUE
from horae.model.fields.table import Row

HOLD = "horae queues hold reports --for 30m --reason deploy-123"


FAIR = "horae queues set reports --policy fair --by '${params.customer}' --weight acme=5 --within priority"


COLUMNS: list[Column] = [
    ("QUEUE", lambda queue: queue["name"] + (" (default)" if queue.get("default") else "")),
    ("POLICY", lambda queue: queue["policy"]["kind"]),
    ("STATE", "state"),
    ("QUEUED", "queued"),
    ("RUNNING", "running"),
    ("LANES", lambda queue: len(queue["lanes"])),
    ("HELD", lambda queue: "; ".join(map(_held, queue.get("holds") or ()))),
]


@click.group(cls=HoraeGroup, examples=("horae queues list", FAIR, HOLD, "horae queues release reports"))
def queues() -> None:
    """List, configure, pause, drain, purge and hold queues."""


request(
    queues, "queues.list", lists(COLUMNS, "There are no queues yet; the first job creates one."),
    examples=("horae queues list", "horae queues list -o json"),
)  # fmt: skip


_BOUNDS = [row for row in QUEUE.rows if row.attribute in ("limit", "max_queued")]


def _limit(row: Row, value: Any) -> str:
    return row.name if value is True else f"{row.name} {value:,}" if isinstance(value, int) else f"{row.name} {value}"


def _show(api: Api, found: ApiDocument, given: Given) -> None:
    queue = found.raw
    if not api.out.is_for_people:
        return api.out.document(queue)
    policy = ", ".join(f"{name} {_words(value)}" for name, value in queue["policy"].items() if name != "kind")
    default = ", the default" if queue.get("default") else ""
    api.out.say(
        f"Queue {queue['name']} is {queue['state']}{default}: {queue['queued']:,} queued, {queue['running']:,} running."
    )
    api.out.say(f"Policy: {queue['policy']['kind']}" + (f" ({policy})" if policy else ""))
    limits = [
        _limit(row, value) for row in _BOUNDS if (value := queue.get(row.name)) is not None and value is not False
    ]
    if queue.get("preempts"):
        api.out.say("Executions of this queue may preempt preemptible executions.")
    if limits:
        api.out.say(f"Limits: {', '.join(limits)}")
    for hold in queue.get("holds") or ():
        api.out.say(f"Held: {_held(hold)}")
    return None


request(
    queues,
    "queues.get",
    _show,
    name="show",
    examples=("horae queues show reports", "horae queues show reports -o json"),
)


@queues.command(
    "set",
    examples=(
        FAIR,
        "horae queues set mail --policy priority --ageing 60s --default",
        "horae queues set mail --policy shortest",
    ),
)
@click.argument("name")
@definition_options
@remote
async def set_(api: Api, name: str, **given: Any) -> None:
    """Define a queue, or change its definition; the change applies at once, also to queued executions."""
    body = definition_of(given)
    if not body:
        raise click.UsageError("Give a field to set, as --policy fair.")
    _show(api, await api.client.queues.set(name, **body), given)


@queues.command("default", examples=("horae queues default mail",))
@click.argument("name")
@remote
async def default_(api: Api, name: str) -> None:
    """Make a queue the default for jobs that name none."""
    _show(api, await api.client.queues.set(name, default=True), {})


request(queues, "queues.pause", _show, examples=("horae queues pause reports --reason 'the printer is broken'",))


request(queues, "queues.resume", _show, examples=("horae queues resume reports",))


@queues.command(examples=("horae queues drain reports --wait",))
@click.argument("name")
@click.option("-w", "--wait", is_flag=True, help="Wait until no execution is queued or running.")
@click.option("--timeout", type=SPAN, help="The longest wait, such as 10m; then the exit code is 1.")
@remote
async def drain(api: Api, name: str, wait: bool, timeout: Micros | None) -> None:
    """Refuse new submissions to a queue, and run the executions that it contains."""
    queue = await api.client.queues.drain(name)
    if wait or timeout is not None:
        remedy = "wait again with the same command"
        queue = await in_time(
            api, api.client.queues.emptied(name), timeout, f"queue {name}", what="The rest of", remedy=remedy
        )
    _show(api, queue, {})


@queues.command(examples=("horae queues purge reports", "horae queues purge reports --yes"))
@click.argument("name")
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@remote
async def purge(api: Api, name: str, yes: bool) -> None:
    """Cancel all executions of a queue that have not started."""
    queue = (await api.client.queues.get(name)).raw
    if not yes:
        confirm(f"Cancel the waiting executions of queue {name} ({queue['queued']:,} queued)?")
    done = (await api.client.queues.purge(name)).raw
    if api.out.is_for_people:
        api.out.say(f"{done['cancelled']:,} executions of queue {name} were cancelled.")
    else:
        api.out.document(done)


def _words(value: Any) -> str:
    if isinstance(value, dict):
        return str(value["kind"]) if "kind" in value else ", ".join(f"{name}={one}" for name, one in value.items())
    return str(value)


def _held(hold: dict[str, Any]) -> str:
    cause = f"window {hold['calendar']}" if hold.get("calendar") else hold["reason"] or "by hand"
    return f"{cause}, {_end(hold.get('until'))}"


def _end(until: str | None) -> str:
    return f"until {until}" if until else "without an end"


def _queue_or_all(name: str | None, every: bool) -> str | None:
    """Return the name of the queue, or None for all queues (`--all`). Raise UsageError for neither or both."""
    if (name is None) != every:
        raise click.UsageError("Name a queue, or give --all.")
    return name


name_argument = click.argument("name", required=False)
all_option = click.option("--all", "every", is_flag=True, help="All queues of the namespace, also future ones.")


@queues.command(examples=(HOLD, f"{HOLD} --drain --wait", "horae queues hold --all --for 2h --reason migration"))
@name_argument
@all_option
@click.option("--for", "length", metavar="SPAN", help="The length of the hold, such as 30m; up to 30 days.")
@click.option("--until", type=TIME, help="The end of the hold, instead of --for.")
@click.option("--from", "since", type=TIME, help="The start of the hold; now by default.")
@click.option(
    "--reason",
    default="",
    metavar="TEXT",
    help="The reason; held executions show it. Another hold with the same reason moves the end of the first.",
)
@click.option("--drain", is_flag=True, help="Mark the hold as a drain, which waits for running executions.")
@click.option("-w", "--wait", is_flag=True, help="Wait until no execution of the queue is running.")
@click.option(
    "--timeout", type=SPAN, help="The longest wait, such as 10m; then the exit code is 1, and the hold stays."
)
@remote
async def hold(
    api: Api, name: str | None, every: bool, length: str | None, wait: bool, timeout: Micros | None, **options: Any
) -> None:
    """Hold a queue for a time: no server starts its executions.

    The hold ends by itself. Running executions continue. New executions are queued and start after the hold.
    """
    hold_info = await api.client.queues.hold(_queue_or_all(name, every), length, **options)
    if wait or timeout is not None:
        return await _drain(api, hold_info, timeout)
    return _print_hold(api, hold_info, "held")


async def _drain(api: Api, made: HoldInfo, timeout: Micros | None) -> None:
    """Wait until no held execution is running, and show the progress."""

    def look(hold: HoldInfo) -> None:
        left = f"{hold.running:,} running" if hold.state == "active" else "not started yet"
        echo(f"{_name(hold)}: {left}", err=True)

    remedy = "the hold stays; wait again with the same command"
    final = await in_time(
        api, api.client.queues.drained(made, look), timeout, _name(made), what="Running work of", remedy=remedy
    )
    _print_hold(api, final, "drained and held")


def _name(hold: HoldInfo) -> str:
    return "all queues" if hold.queue is None else f"queue {hold.queue}"


def _print_hold(api: Api, hold: HoldInfo, verb: str) -> None:
    if not api.out.is_for_people:
        return api.out.document(hold.raw)
    name = _name(hold).capitalize() + (" are" if hold.queue is None else " is")
    begin = f" from {hold.raw['from']}" if hold.state == "planned" else ""
    api.out.say(f"{name} {verb}{begin} {_end(hold.raw.get('until'))}; {hold.running:,} running.")
    return None


@queues.command(examples=("horae queues release reports", "horae queues release reports --reason deploy-123"))
@name_argument
@all_option
@click.option("--reason", metavar="TEXT", help="Only holds with this reason.")
@remote
async def release(api: Api, name: str | None, every: bool, reason: str | None) -> None:
    """End the holds of a queue at once."""
    done = (await api.client.queues.release(_queue_or_all(name, every), reason=reason)).raw
    if api.out.is_for_people:
        api.out.say(done["note"])
    else:
        api.out.document(done)


@queues.command(examples=("horae queues holds", "horae queues holds reports --ended"))
@name_argument
@click.option("--ended", is_flag=True, help="Include holds that ended in the last 30 days.")
@remote
async def holds(api: Api, name: str | None, ended: bool) -> None:
    """List holds and maintenance windows, with the users who started and ended them."""
    page = await api.client.queues.holds(name, ended=ended)
    columns: list[Column] = [
        ("QUEUE", lambda one: one.get("queue") or "(all)"),
        ("STATE", "state"),
        ("WINDOW", "calendar"),
        ("REASON", "reason"),
        ("FROM", "from"),
        ("UNTIL", "until"),
        ("RUNNING", "running"),
        ("BY", "createdBy"),
        *([("ENDED", "endedAt"), ("ENDED BY", "endedBy")] if ended else []),
    ]
    api.out.list(page.raw, columns, "There are no holds.")


@queues.command(
    examples=(
        "horae queues window reports --calendar nights",
        "horae queues window --all --calendar upgrades --reason 'database upgrade' --drain",
        "horae queues window reports --calendar nights --remove",
    )
)
@name_argument
@all_option
@click.option("--calendar", required=True, metavar="NAME", help="The calendar; while it is open, no execution starts.")
@click.option("--reason", default="", metavar="TEXT", help="The reason; held executions show it.")
@click.option("--drain", is_flag=True, help="Mark the window as a drain, which waits for running executions.")
@click.option("--remove", is_flag=True, help="Remove the window.")
@remote
async def window(
    api: Api, name: str | None, every: bool, calendar: str, reason: str, drain: bool, remove: bool
) -> None:
    """Make a calendar a queue's maintenance window: while the calendar is open, no execution of the queue starts."""
    queue = _queue_or_all(name, every)
    if not remove:
        hold_info = await api.client.queues.set_window(queue, calendar, reason=reason, drain=drain)
        return _print_hold(api, hold_info, "held")
    await api.client.queues.remove_window(queue, calendar)
    if api.out.is_for_people:
        api.out.say(f"Calendar {calendar} no longer holds {'all queues' if queue is None else f'queue {queue}'}.")
    return None
