"""The options of `worker` and `up` for queues, slots, labels and resources."""

from collections.abc import Callable
from typing import TypeVar

import click

Function = TypeVar("Function", bound=Callable[..., object])
_OPTIONS = (
    click.option(
        "--queue",
        "queues",
        multiple=True,
        metavar="QUEUE[=WEIGHT]",
        help="A queue from which the worker takes executions, perhaps with a weight, such as critical=5; A,B takes from"
        " B only when A is empty; repeatable.  [default: default]",
    ),
    click.option(
        "--concurrency",
        "--slots",
        "concurrency",
        metavar="N",
        help="The worker's slots: the most executions at a time if each takes one slot."
        "  [env: HORAE_CONCURRENCY; default: 10]",
    ),
    click.option(
        "--label", "labels", multiple=True, metavar="NAME[=VALUE]", help="A label that jobs may require; repeatable."
    ),
    click.option(
        "--resource",
        "resources",
        multiple=True,
        metavar="NAME=AMOUNT",
        help="The amount of a resource that executions may use, as memory=8GiB; repeatable.",
    ),
)


def worker_options(command: Function) -> Function:
    """Add the options for a worker's queues, slots, labels and resources."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
