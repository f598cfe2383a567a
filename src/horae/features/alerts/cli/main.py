"""`horae alerts`: alerts, the rules that raise them, and the channels that are notified."""

from typing import Any

import click

from horae.cli.lazy import HoraeGroup
from horae.cli.output import Age, Column
from horae.cli.remote import Api, remote
from horae.cli.request import lists, one, request
from horae.features.alerts.cli.channels import channels
from horae.features.alerts.cli.rules import rules, show_test


@click.group(
    cls=HoraeGroup,
    examples=(
        "horae alerts list --state firing",
        "horae alerts rules put nightly --kind failures-in-a-row --job report --channel ops",
    ),
)
def alerts() -> None:
    """Show and acknowledge alerts; write rules and channels."""


alerts.add_command(rules)
alerts.add_command(channels)


def _delivery_counts(alert: dict[str, Any]) -> str:
    states = [one["state"] for one in alert["deliveries"]]
    return ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states)) or "none"


COLUMNS: list[Column] = [
    ("ALERT", "alertId"),
    ("STATE", lambda one: f"{one['state']}{' (acknowledged)' if one.get('acknowledgedAt') else ''}"),
    ("SEVERITY", "severity"),
    ("RULE", "rule"),
    ("SUBJECT", "subject"),
    ("SINCE", Age("since")),
    ("TOLD", _delivery_counts),
    ("MESSAGE", "message"),
]
request(
    alerts, "alerts.list", lists(COLUMNS, "There are no alerts."),
    examples=("horae alerts list", "horae alerts list --state firing --job report"),
)  # fmt: skip


request(
    alerts, "alerts.get", one, name="show", called={"alert_id": "alert"},
    examples=("horae alerts show 0198c5a0-0000-7000-8000-000000000000",),
)  # fmt: skip


@alerts.command(
    examples=(
        "horae alerts acknowledge 0198c5a0-0000-7000-8000-000000000000",
        "horae alerts acknowledge --rule nightly",
    )
)
@click.argument("alert", required=False)
@click.option("--rule", metavar="NAME", help="Acknowledge all firing alerts of this rule.")
@remote
async def acknowledge(api: Api, alert: str | None, rule: str | None) -> None:
    """Acknowledge an alert, or all alerts of a rule. Acknowledged alerts send no more reminders."""
    if (alert is None) == (rule is None):
        raise click.UsageError("Name an alert, or a rule with --rule NAME.")
    if rule is not None:
        count = await api.client.alerts.rules.acknowledge(rule)
        if not api.out.is_for_people:
            return api.out.document({"rule": rule, "acknowledged": count})
        return api.out.say(f'{count} alert{"" if count == 1 else "s"} of rule "{rule}" acknowledged.')
    done = await api.client.alerts.acknowledge(str(alert))
    if not api.out.is_for_people:
        return api.out.document(done.raw)
    return api.out.say(f'The alert of rule "{done.rule}" about {done.subject} is acknowledged.')


request(alerts, "alerts.rules.test", show_test, called={"name": "rule"}, examples=("horae alerts test nightly",))
