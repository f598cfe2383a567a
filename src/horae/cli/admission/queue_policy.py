"""The options of `horae queues set` as a queue's definition."""

import json
from collections.abc import Callable
from typing import Any

import click

from horae.cli.values import pairs
from horae.errors import BadInput

KINDS = ("fifo", "priority", "fair", "deadline", "shortest")
_OPTIONS = (
    click.option("--policy", metavar="KIND", help=f"{', '.join(KINDS)}; or the whole policy as JSON."),
    click.option("--ageing", metavar="SPAN", help="Of priority: the head start of a level, as 60s."),
    click.option("--strict", is_flag=True, help="Of priority: a higher level always goes first."),
    click.option("--factor", type=float, metavar="N", help="Of shortest: how much a long execution gives way."),
    click.option("--by", metavar="KEY", help="Of fair: job, caller, or a template as '${params.customer}'."),
    click.option("--within", metavar="KIND", help="Of fair: the order inside a share."),
    click.option("--weight", multiple=True, metavar="SHARE=N", help="Of fair: a share's weight; repeatable."),
    click.option("--default-weight", type=float, metavar="N", help="Of fair: that of shares that are not named."),
    click.option(
        "--reserve",
        multiple=True,
        metavar="SHARE=N",
        help="Of fair: slots (4) or a part (25%) for a share; repeatable.",
    ),
    click.option("--charge", type=click.Choice(("time", "executions")), help="Of fair: what shares are charged."),
    click.option("--concurrency", type=click.IntRange(0), metavar="N", help="How many run at once; 0 for no limit."),
    click.option("--rate", metavar="N/SPAN", help="How often they start, as 100/1m; none for no limit."),
    click.option("--burst", type=click.IntRange(1), metavar="N", help="How many may start at once after a pause."),
    click.option("--sequence/--no-sequence", default=None, help="One at a time, in order, also through retries."),
    click.option("--max-queued", metavar="N", help="How many executions it takes, or none for no bound."),
    click.option("--preempts/--no-preempts", default=None, help="Whether it takes the place of preemptible work."),
    click.option("--default/--no-default", default=None, help="Whether jobs that name no queue go here."),
)


def definition_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """What can be said of a queue."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def definition_of(policy: str | None, default: bool | None, **given: Any) -> dict[str, Any]:
    """What the options say; only what was given."""
    said = {
        "ageing": given["ageing"],
        "strict": given["strict"] or None,
        "factor": given["factor"],
        "by": given["by"],
        "within": given["within"],
        "weights": {name: _number(text, "--weight") for name, text in pairs(given["weight"], "--weight").items()}
        or None,
        "defaultWeight": given["default_weight"],
        "reserve": {name: _slots(text) for name, text in pairs(given["reserve"], "--reserve").items()} or None,
        "charge": given["charge"],
    }
    rules = {name: value for name, value in said.items() if value is not None}
    body: dict[str, Any] = {**_limits(given), **({} if default is None else {"default": default})}
    if (most := given["max_queued"]) is not None:
        body["maxQueued"] = None if most == "none" else int(_number(most, "--max-queued"))
    if policy is not None and policy.lstrip().startswith("{"):
        if rules:
            raise click.UsageError("A policy as JSON says everything: leave the other options out.")
        return {**body, "policy": _read(policy)}
    if rules and policy is None:
        raise click.UsageError(f"Say which policy these belong to: --policy {'|'.join(KINDS)}.")
    return body if policy is None else {**body, "policy": {"kind": policy, **rules}}


def _limits(given: dict[str, Any]) -> dict[str, Any]:
    """What a queue is limited to; null takes a limit away."""
    names = ("concurrency", "rate", "burst", "sequence", "preempts")
    said = {name: given[name] for name in names if given[name] is not None}
    none = {"concurrency": 0, "rate": "none"}
    return {name: None if value == none.get(name) else value for name, value in said.items()}


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise BadInput(f"--policy is not JSON: {error}.", 'Write {"kind": "fair"}.', field="policy") from None


def _number(text: str, option: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise BadInput(f"{option}: {text!r} is not a number.", f"Write {option} acme=5.", field=option) from None


def _slots(text: str) -> int | str:
    return int(text) if text.isdigit() else text
