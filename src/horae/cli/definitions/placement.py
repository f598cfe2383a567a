"""The options that say where a job's executions run."""

from typing import Any

import click

from horae.cli.values import pairs

FIELDS = ("needs", "prefers", "slots", "resources", "affinity", "spread")
PLACEMENT_OPTIONS = (
    click.option(
        "--need", multiple=True, metavar="LABEL", help="A label its worker must carry: gpu or gpu=a100; repeatable."
    ),
    click.option(
        "--prefer",
        multiple=True,
        metavar="LABEL[,weight=N][,patience=SPAN]",
        help="A label it waits for, 10s unless said, before it runs anywhere; the lightest is given up first;"
        " repeatable.",
    ),
    click.option(
        "--slots", type=click.IntRange(1), metavar="N", help="How many slots of its worker it takes; 1 otherwise."
    ),
    click.option(
        "--resource",
        multiple=True,
        metavar="NAME=AMOUNT",
        help="What else it takes of its worker, as memory=2GiB; repeatable.",
    ),
    click.option(
        "--affinity",
        metavar="KEY[,patience=SPAN]",
        help="Run where this key ran last, as '${params.model}'; waits 10s for that worker unless said.",
    ),
    click.option("--spread", is_flag=True, default=None, help="Spread its executions evenly over workers."),
)


def placement(options: dict[str, Any]) -> dict[str, Any]:
    """What the options say, as a definition says it."""
    affinity = options["affinity"]
    return {
        "needs": list(options["need"]),
        "prefers": [_parted(one, "label") for one in options["prefer"]],
        "slots": options["slots"],
        "resources": pairs(options["resource"], "--resource"),
        "affinity": None if affinity is None else _parted(affinity, "key"),
        "spread": options["spread"],
    }


def _parted(text: str, first: str) -> dict[str, Any]:
    """`zone=eu,weight=2,patience=30s` as an object; what comes first may hold commas of its own."""
    parts: dict[str, Any] = {}
    while True:
        text, comma, last = text.rpartition(",")
        name, equals, value = last.partition("=")
        if not comma or not equals or name not in ("weight", "patience"):
            return {first: f"{text}{comma}{last}", **parts}
        parts[name] = int(value) if name == "weight" and value.isdigit() else value
