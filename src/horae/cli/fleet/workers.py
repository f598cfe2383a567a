"""`horae workers`: list, enrol, drain and scale workers."""

from typing import Any

import click

from horae.cli.lazy import HoraeGroup
from horae.cli.output import Column, TimeField
from horae.cli.remote import Api, remote
from horae.cli.request import Given, lists, message, one, request
from horae.cli.terminal import echo
from horae.cli.times import SPAN, SpanType
from horae.client.views import ApiDocument
from horae.env import SECOND


@click.group(
    cls=HoraeGroup,
    examples=("horae workers list", "horae workers drain WORKER", "horae workers autoscale --max 8 -- horae worker"),
)
def workers() -> None:
    """List, enrol and drain workers, and scale them with a queue."""


def _used(worker: dict[str, Any]) -> str:
    """Describe the use of a worker's slots and resources."""
    used, has = worker.get("used", {}), {"slots": worker.get("capacity", 0), **worker.get("resources", {})}
    return ", ".join(f"{used.get(name, 0)}/{amount} {name}" for name, amount in has.items())


COLUMNS: list[Column] = [
    ("WORKER", "workerId"),
    ("STATUS", "status"),
    ("HOST", "host"),
    ("RUNNING", "running"),
    ("USED", _used),
    ("QUEUES", "queues"),
    ("LABELS", "labels"),
    ("VERSION", "version"),
    ("SEEN", TimeField("lastHeartbeat")),
]


def _print_token(api: Api, made: ApiDocument, given: Given) -> None:
    if not api.out.is_for_people:
        return api.out.document(made.raw)
    echo(made.raw["token"])
    echo(
        f"Start the worker with --enrol and this token. The token works once, until {made.raw['expiresAt']}.", err=True
    )
    return None


request(
    workers, "workers.list",
    lists(COLUMNS, "There are no workers. Start one with: horae worker --server URL --key KEY"),
    examples=("horae workers list", "horae workers list -o json"),
)  # fmt: skip


request(
    workers, "workers.get", one, name="show", called={"worker_id": "worker"}, examples=("horae workers show WORKER",)
)


request(
    workers, "workers.enrol", _print_token,
    examples=("horae workers enrol", "horae workers enrol --queue gpu --expires-in 1d"),
)  # fmt: skip


def _draining(worker: Any, given: Given) -> str:
    count = worker.running or 0
    runs = f"it runs {count} execution{'' if count == 1 else 's'}"
    return f"Worker {worker.worker_id} has been asked to drain; {runs}."


request(
    workers, "workers.drain",
    message(_draining),
    called={"worker_id": "worker"}, examples=("horae workers drain WORKER",),
)  # fmt: skip


@workers.command(
    examples=(
        "horae workers autoscale --min 1 --max 8 --target-wait 5s -- horae worker --queue default",
        "horae workers autoscale --queue gpu --max 20 --slots 2 --up './more.sh' --down './fewer.sh'",
        "horae workers autoscale --dry-run --once",
    ),
)
@click.option("--queue", default="default", show_default=True, metavar="QUEUE", help="The queue to follow.")
@click.option("--min", type=click.IntRange(0), default=0, show_default=True, metavar="N", help="The fewest workers.")
@click.option("--max", type=click.IntRange(1), default=10, show_default=True, metavar="N", help="The most workers.")
@click.option(
    "--target-wait", default="5s", show_default=True, metavar="SPAN", help="How long an execution may wait for a slot."
)
@click.option(
    "--slots",
    type=click.IntRange(1),
    metavar="N",
    help="The slots of a new worker; by default the average of the present workers, or 10 if there are none.",
)
@click.option(
    "--every", default="5s", show_default=True, type=SpanType(least=SECOND // 10), help="The time between two checks."
)
@click.option(
    "--step",
    type=click.IntRange(1),
    default=4,
    show_default=True,
    metavar="N",
    help="The most workers to add or remove in one change.",
)
@click.option(
    "--cooldown",
    default="60s",
    show_default=True,
    type=SPAN,
    help="How long fewer workers must be enough before any are drained.",
)
@click.option("--up", metavar="CMD", help="A shell line that starts HORAE_CHANGE workers elsewhere.")
@click.option("--down", metavar="CMD", help="A shell line that drains HORAE_CHANGE workers elsewhere.")
@click.option("--dry-run", is_flag=True, help="Show the changes without making them.")
@click.option("--once", is_flag=True, help="Check once and exit.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND...]")
@remote
async def autoscale(api: Api, command: tuple[str, ...], **options: Any) -> None:
    """Start and drain workers so that queued executions start within a target wait.

    COMMAND is the command line of a worker. It is started on this machine once for each worker that is needed. Workers
    that are no longer needed get SIGTERM, which drains them. With --up and --down, workers run elsewhere, and both
    shell lines get the environment variables HORAE_WORKERS (the present number), HORAE_DESIRED (the wanted number) and
    HORAE_CHANGE (the difference). When this command gets SIGTERM or Ctrl-C, it drains the workers that it started on
    this machine, and waits for them.
    """
    from horae.cli.fleet.autoscale import autoscale as follow

    await follow(api, command, options)
