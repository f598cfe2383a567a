"""The options of a job's definition that say what becomes of failures, and which time is bounded."""

from typing import Any

import click

from horae.cli.values import pairs
from horae.errors import BadInput

_TIMEOUTS = ("queue", "start", "heartbeat", "total")
FLAGS = {
    "retry.retryOn": "--retry-on",
    "retry.giveUpOn": "--give-up-on",
    "retry.budgets": "--budget",
    **{f"timeouts.{name}": f"--{name}-timeout" for name in _TIMEOUTS},
}

OPTIONS = (
    click.option(
        "--retry-on",
        multiple=True,
        metavar="RULE",
        help="Only such errors are tried again: ConnectionError, exit:75, http:5xx, 'message:*busy*'; repeatable.",
    ),
    click.option("--give-up-on", multiple=True, metavar="RULE", help="Such failures are not tried again; repeatable."),
    click.option(
        "--budget",
        multiple=True,
        metavar="CLASS=N",
        help="Further tries for error, timeout, lost or platform alone; repeatable.",
    ),
    click.option("--queue-timeout", metavar="SPAN", help="How long it may stand in the queue, as 10m."),
    click.option("--start-timeout", metavar="SPAN", help="How long a worker may hold it without beginning it."),
    click.option("--heartbeat-timeout", metavar="SPAN", help="How long a try may be silent."),
    click.option("--total-timeout", metavar="SPAN", help="How long it may take, all tries together."),
)


def read_failing(options: dict[str, Any]) -> dict[str, Any]:
    """The fields that these options say."""
    retry = {
        "delay": options["retry_delay"],
        "retryOn": list(options["retry_on"]),
        "giveUpOn": list(options["give_up_on"]),
        "budgets": {kind: _count(kind, text) for kind, text in pairs(options["budget"], "--budget").items()},
    }
    spans = {name: options[f"{name}_timeout"] for name in _TIMEOUTS}
    return {
        "retry": {name: value for name, value in retry.items() if value},
        "timeouts": {name: span for name, span in spans.items() if span is not None},
    }


def _count(kind: str, text: str) -> int:
    if not text.isdecimal():
        raise BadInput(f"--budget {kind}={text} names no number.", "Write --budget timeout=1.")
    return int(text)
