"""`horae alerts`: what was found, the rules that look for it, and the channels that are told."""

from typing import Any

import click

from horae.cli.lazy import Group
from horae.cli.output import Column
from horae.cli.remote import Api, page_options, remote
from horae.features.alerts.cli.channels import channels
from horae.features.alerts.cli.rules import rules, tell_test


@click.group(
    cls=Group,
    examples=(
        "horae alerts list --state firing",
        "horae alerts rules put nightly --kind failures-in-a-row --job report --channel ops",
    ),
)
def alerts() -> None:
    """Look at alerts; write rules, and channels that are told."""


alerts.add_command(rules)
alerts.add_command(channels)


@alerts.command("list", examples=("horae alerts list", "horae alerts list --state firing --job report"))
@click.option("--state", type=click.Choice(["firing", "recovered"]), help="Only those that go on, or are over.")
@click.option("--rule", metavar="NAME", help="Only those of this rule.")
@click.option("--job", metavar="JOB", help="Only those of this job.")
@page_options
@remote
async def list_(api: Api, **wanted: Any) -> None:
    """List alerts, newest first."""
    columns: list[Column] = [
        ("ALERT", "alertId"),
        ("STATE", lambda one: f"{one['state']}{' (acknowledged)' if one.get('acknowledgedAt') else ''}"),
        ("SEVERITY", "severity"),
        ("RULE", "rule"),
        ("SUBJECT", "subject"),
        ("SINCE", lambda one: api.out.age(one["since"])),
        ("TOLD", _told),
        ("MESSAGE", "message"),
    ]
    api.out.list((await api.client.alerts.list(**wanted)).raw, columns, "There are no alerts.")


def _told(alert: dict[str, Any]) -> str:
    states = [one["state"] for one in alert["deliveries"]]
    return ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states)) or "nobody"


@alerts.command(examples=("horae alerts show 0198c5a0-0000-7000-8000-000000000000",))
@click.argument("alert")
@remote
async def show(api: Api, alert: str) -> None:
    """Show an alert, and how its notices fare."""
    api.out.one((await api.client.alerts.get(alert)).raw)


@alerts.command(
    examples=(
        "horae alerts acknowledge 0198c5a0-0000-7000-8000-000000000000",
        "horae alerts acknowledge --rule nightly",
    )
)
@click.argument("alert", required=False)
@click.option("--rule", metavar="NAME", help="All alerts of this rule that go on.")
@remote
async def acknowledge(api: Api, alert: str | None, rule: str | None) -> None:
    """Say that you look after an alert, or all of a rule: nobody is reminded any more."""
    if (alert is None) == (rule is None):
        raise click.UsageError("Name an alert, or a rule with --rule NAME.")
    if rule is not None:
        count = await api.client.alerts.rules.acknowledge(rule)
        if not api.out.is_for_people:
            return api.out.document({"rule": rule, "acknowledged": count})
        return api.out.say(f"{count} alert{'' if count == 1 else 's'} of {rule} acknowledged.")
    done = await api.client.alerts.acknowledge(str(alert))
    if not api.out.is_for_people:
        return api.out.document(done.raw)
    return api.out.say(f"{done.rule} of {done.subject} is acknowledged.")


@alerts.command(examples=("horae alerts test nightly",))
@click.argument("rule")
@remote
async def test(api: Api, rule: str) -> None:
    """Tell all channels of a rule that this is a test."""
    tell_test(api, await api.client.alerts.rules.test(rule))
