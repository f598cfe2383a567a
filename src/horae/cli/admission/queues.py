"""`horae queues`: what waits where; holds and maintenance windows, while which nothing is started."""

from typing import Any

import click

from horae.cli.admission.queue_policy import definition_of, definition_options
from horae.cli.asking import confirm
from horae.cli.executions.waiting import in_time
from horae.cli.lazy import HoraeGroup
from horae.cli.output import Column
from horae.cli.remote import Api, remote
from horae.cli.request import Given, lists, request
from horae.cli.terminal import echo
from horae.cli.times import TIME
from horae.client.kernel.queues import HoldInfo
from horae.client.views import ApiDocument
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
    """List queues and what waits in them; say who is next; pause, drain, purge and hold them."""


request(
    queues, "queues.list", lists(COLUMNS, "There are no queues yet; the first job makes one."),
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
    said = [_limit(row, value) for row in _BOUNDS if (value := queue.get(row.name)) is not None and value is not False]
    if queue.get("preempts"):
        api.out.say("It takes the place of preemptible work.")
    if said:
        api.out.say(f"Limits: {', '.join(said)}")
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
    """Define a queue, or change its definition; it acts at once, also on what is queued."""
    body = definition_of(given)
    if not body:
        raise click.UsageError("Say what is to be so, as --policy fair.")
    _show(api, await api.client.queues.set(name, **body), given)


@queues.command("default", examples=("horae queues default mail",))
@click.argument("name")
@remote
async def default_(api: Api, name: str) -> None:
    """Make a queue the one of jobs that name none."""
    _show(api, await api.client.queues.set(name, default=True), {})


request(queues, "queues.pause", _show, examples=("horae queues pause reports --reason 'the printer is broken'",))


request(queues, "queues.resume", _show, examples=("horae queues resume reports",))


@queues.command(examples=("horae queues drain reports --wait",))
@click.argument("name")
@click.option("-w", "--wait", is_flag=True, help="Wait until nothing is queued or runs.")
@click.option("--timeout", metavar="SPAN", help="Wait no longer than this, as 10m; the exit code is 1.")
@remote
async def drain(api: Api, name: str, wait: bool, timeout: str | None) -> None:
    """Refuse what is submitted to a queue, and run what it has."""
    queue = await api.client.queues.drain(name)
    if wait or timeout is not None:
        remedy = "it goes on; wait again with the same command"
        queue = await in_time(
            api, api.client.queues.emptied(name), timeout, f"queue {name}", what="What is left of", remedy=remedy
        )
    _show(api, queue, {})


@queues.command(examples=("horae queues purge reports", "horae queues purge reports --yes"))
@click.argument("name")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@remote
async def purge(api: Api, name: str, yes: bool) -> None:
    """Cancel everything of a queue that has not begun."""
    queue = (await api.client.queues.get(name)).raw
    if not yes:
        confirm(f"Cancel what waits in queue {name} ({queue['queued']:,} queued)?")
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


def _which(name: str | None, every: bool) -> str | None:
    """The queue that is meant; None for all of them."""
    if (name is None) != every:
        raise click.UsageError("Name a queue, or say --all.")
    return name


name_argument = click.argument("name", required=False)
all_option = click.option("--all", "every", is_flag=True, help="All queues of the namespace, also those to come.")


@queues.command(examples=(HOLD, f"{HOLD} --drain --wait", "horae queues hold --all --for 2h --reason migration"))
@name_argument
@all_option
@click.option("--for", "length", metavar="SPAN", help="How long it lasts, as 30m; up to 30 days.")
@click.option("--until", type=TIME, help="When it ends, instead of --for.")
@click.option("--from", "since", type=TIME, help="When it begins; at once otherwise.")
@click.option("--reason", default="", metavar="TEXT", help="Why; what is held says so. Again: the end is moved.")
@click.option("--drain", is_flag=True, help="Mark that what runs is waited for.")
@click.option("-w", "--wait", is_flag=True, help="Wait until nothing of it runs any more; exit 0 then.")
@click.option("--timeout", metavar="SPAN", help="Wait no longer than this, as 10m; the hold stays, the exit code is 1.")
@remote
async def hold(
    api: Api, name: str | None, every: bool, length: str | None, wait: bool, timeout: str | None, **options: Any
) -> None:
    """Start nothing of a queue for a time, on any server.

    It ends by itself. What runs goes on; what is submitted or fires meanwhile is queued, and starts afterwards.
    """
    made = await api.client.queues.hold(_which(name, every), length, **options)
    if wait or timeout is not None:
        return await _drain(api, made, timeout)
    return _tell(api, made, "held")


async def _drain(api: Api, made: HoldInfo, timeout: str | None) -> None:
    """Wait until nothing of what is held runs, and show how far that is."""

    def look(hold: HoldInfo) -> None:
        left = f"{hold.running:,} running" if hold.state == "open" else "not begun yet"
        echo(f"{_name(hold)}: {left}", err=True)

    remedy = "the hold stays; wait again with the same command"
    final = await in_time(
        api, api.client.queues.drained(made, look), timeout, _name(made), what="What runs of", remedy=remedy
    )
    _tell(api, final, "drained and held")


def _name(hold: HoldInfo) -> str:
    return "all queues" if hold.queue is None else f"queue {hold.queue}"


def _tell(api: Api, hold: HoldInfo, verb: str) -> None:
    if not api.out.is_for_people:
        return api.out.document(hold.raw)
    name = _name(hold).capitalize() + (" are" if hold.queue is None else " is")
    begin = f" from {hold.raw['from']}" if hold.state == "planned" else ""
    api.out.say(f"{name} {verb}{begin} {_end(hold.raw.get('until'))}; {hold.running:,} running.")
    return None


@queues.command(examples=("horae queues release reports", "horae queues release reports --reason deploy-123"))
@name_argument
@all_option
@click.option("--reason", metavar="TEXT", help="Only what is held for this reason.")
@remote
async def release(api: Api, name: str | None, every: bool, reason: str | None) -> None:
    """Let a queue that was held go on at once."""
    done = (await api.client.queues.release(_which(name, every), reason=reason)).raw
    if api.out.is_for_people:
        api.out.say(done["note"])
    else:
        api.out.document(done)


@queues.command(examples=("horae queues holds", "horae queues holds reports --ended"))
@name_argument
@click.option("--ended", is_flag=True, help="Also those that ended in the last 30 days.")
@remote
async def holds(api: Api, name: str | None, ended: bool) -> None:
    """List holds and maintenance windows, and who opened and ended them."""
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
    api.out.list(page.raw, columns, "Nothing is held.")


@queues.command(
    examples=(
        "horae queues window reports --calendar nights",
        "horae queues window --all --calendar upgrades --reason 'database upgrade' --drain",
        "horae queues window reports --calendar nights --remove",
    )
)
@name_argument
@all_option
@click.option("--calendar", required=True, metavar="NAME", help="While it is open, nothing is started.")
@click.option("--reason", default="", metavar="TEXT", help="Why; what is held says so.")
@click.option("--drain", is_flag=True, help="Mark that what runs is waited for.")
@click.option("--remove", is_flag=True, help="Take the window away.")
@remote
async def window(
    api: Api, name: str | None, every: bool, calendar: str, reason: str, drain: bool, remove: bool
) -> None:
    """Make a calendar a queue's maintenance window: while it is open, nothing is started."""
    queue = _which(name, every)
    if not remove:
        made = await api.client.queues.set_window(queue, calendar, reason=reason, drain=drain)
        return _tell(api, made, "held")
    await api.client.queues.remove_window(queue, calendar)
    if api.out.is_for_people:
        api.out.say(f"Calendar {calendar} holds {'all queues' if queue is None else f'queue {queue}'} no more.")
    return None
