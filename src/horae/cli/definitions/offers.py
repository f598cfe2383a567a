"""What a worker offers, as `worker` and `up` are told it."""

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
        help="A queue to take from; repeatable. By weights as critical=5; A,B takes from B only when A has nothing."
        "  [default: default]",
    ),
    click.option(
        "--concurrency",
        "--slots",
        "concurrency",
        metavar="N",
        help="Its slots: executions at a time, unless some take more than one.  [env: HORAE_CONCURRENCY; default: 10]",
    ),
    click.option(
        "--label", "labels", multiple=True, metavar="NAME[=VALUE]", help="What it has that jobs may need; repeatable."
    ),
    click.option(
        "--resource",
        "resources",
        multiple=True,
        metavar="NAME=AMOUNT",
        help="How much it has of what executions take beside slots, as memory=8GiB; repeatable.",
    ),
)


def offers(command: Function) -> Function:
    """The options by which a worker says what it takes and what it has."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
