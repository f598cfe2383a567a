"""Limits of a job, as options say them."""

from typing import Any

import click

from horae.errors import BadInput

FIELDS = ("concurrency", "rate", "burst", "limits", "sequence")
_EXAMPLE = "Write --limit '${params.customer}=2', with a rate --limit '${params.customer}=2,10/1m', or a rate alone."

LIMIT_OPTIONS = (
    click.option("--concurrency", type=click.IntRange(1), metavar="N", help="How many of it run at once."),
    click.option("--rate", metavar="N/SPAN", help="How often it starts, as 100/1m."),
    click.option("--burst", type=click.IntRange(1), metavar="N", help="How many may start at once after a pause."),
    click.option(
        "--limit",
        multiple=True,
        metavar="KEY=N[,RATE]",
        help="How many run at once, or start, for each value of a key, as '${params.customer}=2,10/1m'; repeatable.",
    ),
    click.option("--sequence", metavar="KEY", help="A key whose executions run one after another."),
)


def limits(options: dict[str, Any]) -> dict[str, Any]:
    """The fields that these options stand for."""
    return {
        **{name: options[name] for name in ("concurrency", "rate", "burst", "sequence")},
        "limits": [_limit(one) for one in options["limit"]],
    }


def _limit(text: str) -> dict[str, Any]:
    key, equals, said = text.rpartition("=")
    parts = [part.strip() for part in said.split(",") if part.strip()]
    if not equals or not key or not 1 <= len(parts) <= 2:
        raise BadInput(f"{text!r} does not say a key and its limit.", _EXAMPLE)
    limit: dict[str, Any] = {"key": key}
    for part in parts:
        if "/" in part:
            limit["rate"] = part
        elif part.isdigit():
            limit["concurrency"] = int(part)
        else:
            raise BadInput(f"{part!r} is neither a number nor a rate.", _EXAMPLE)
    return limit
