"""The options of a job's definition for failures and timeouts."""

from typing import Any

import click

from horae.cli.fields import help_of
from horae.cli.values import pairs
from horae.errors import BadInput
from horae.model.definitions.reading.timeouts import BOUNDS
from horae.model.definitions.retry import BUDGETS

_TIMEOUTS = tuple(row for row in BOUNDS.table.rows if row.flag)
_KINDS = BUDGETS.table.names
FLAGS = {
    "retry.retryOn": "--retry-on",
    "retry.giveUpOn": "--give-up-on",
    "retry.budgets": "--budget",
    **{f"timeouts.{row.name}": f"--{row.flag}" for row in _TIMEOUTS},
}

OPTIONS = (
    click.option(
        "--retry-on",
        multiple=True,
        metavar="RULE",
        help="Retry only these errors: ConnectionError, exit:75, http:5xx, 'message:*busy*'; repeatable.",
    ),
    click.option("--give-up-on", multiple=True, metavar="RULE", help="Do not retry these failures; repeatable."),
    click.option(
        "--budget",
        multiple=True,
        metavar="CLASS=N",
        help=f"The retries of failures of one class: {', '.join(_KINDS[:-1])} or {_KINDS[-1]}; repeatable.",
    ),
    *(click.option(f"--{row.flag}", metavar=row.field.metavar, help=help_of(row, BOUNDS.table)) for row in _TIMEOUTS),
)


def read_failure_options(options: dict[str, Any]) -> dict[str, Any]:
    """Return the fields `retry` and `timeouts` that the options give."""
    retry = {
        "delay": options["retry_delay"],
        "retryOn": list(options["retry_on"]),
        "giveUpOn": list(options["give_up_on"]),
        "budgets": {kind: _count(kind, text) for kind, text in pairs(options["budget"], "--budget").items()},
    }
    spans = {row.name: options[row.flag.replace("-", "_")] for row in _TIMEOUTS}
    return {
        "retry": {name: value for name, value in retry.items() if value},
        "timeouts": {name: span for name, span in spans.items() if span is not None},
    }


def _count(kind: str, text: str) -> int:
    if not text.isdecimal():
        raise BadInput(f"--budget {kind}={text} is not a number.", "Write --budget timeout=1.")
    return int(text)
