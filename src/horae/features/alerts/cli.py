"""`horae alerts`: alerts, the rules that raise them, and the channels that are notified."""

from typing import Any

import click

from horae.cli.fields import given_by, options_of
from horae.cli.lazy import HoraeGroup
from horae.cli.output import Column, TimeField
from horae.cli.remote import Api, remote
from horae.cli.request import Given, lists, message, one, request
from horae.cli.values import read_one
from horae.features.alerts.client import AlertTest
from horae.features.alerts.model.channel import CHANNEL
from horae.features.alerts.model.rule import RULE

PUT = "horae alerts rules put nightly --kind failures-in-a-row --job report --count 3 --channel ops"
SWITCH = "horae alerts rules put backups --kind missing-success --job 'backup-*' --since 26h --channel ops"
WEBHOOK = "horae alerts channels put ops --webhook https://example.com/alerts"
EMAIL = (
    "horae alerts channels put mail --email ops@example.com --from horae@example.com --smtp smtp.example.com"
    " --user horae --password secret://smtp-password"
)


@click.group("rules", cls=HoraeGroup, examples=(PUT, "horae alerts rules list"))
def rules() -> None:
    """Write, list, pause and delete rules, which raise alerts."""


@rules.command("put", examples=(PUT, SWITCH, "horae alerts rules put nightly -f nightly.yaml"))
@click.argument("name")
@click.option("-f", "--file", metavar="FILE", help="Read the rule from a YAML or JSON file; - is stdin.")
@options_of(RULE)
@remote
async def put_rule(api: Api, name: str, file: str | None, **options: Any) -> None:
    """Create a rule, or replace its definition. Each kind has its own fields."""
    document = {**({} if file is None else read_one(file, "rule")), **given_by(RULE, options)}
    done = await api.client.alerts.rules.put(name, document)
    if not api.out.is_for_people:
        return api.out.document(done.raw)
    channels = ", ".join(done.raw["channels"]) or "no channel; name one with --channel"
    return api.out.say(f"Rule {name} is at version {done.version}; it notifies {channels}.")


RULE_COLUMNS: list[Column] = [
    ("NAME", "name"),
    ("KIND", "kind"),
    ("STATE", "state"),
    ("FIRING", "firing"),
    ("CHANNELS", lambda one: ", ".join(one["channels"])),
    ("DESCRIPTION", "description"),
]
request(
    rules, "alerts.rules.list",
    lists(RULE_COLUMNS, "There are no rules. Write one: horae alerts rules put NAME --kind KIND"),
    examples=("horae alerts rules list",),
)  # fmt: skip


request(rules, "alerts.rules.get", one, name="show", examples=("horae alerts rules show nightly -o yaml",))


request(rules, "alerts.rules.pause", message("Rule {name} is paused."), examples=("horae alerts rules pause nightly",))


request(
    rules, "alerts.rules.resume", message("Rule {name} is active."), examples=("horae alerts rules resume nightly",)
)


request(
    rules, "alerts.rules.delete", message("Deleted rule {name}.", deleted=True),
    examples=("horae alerts rules delete nightly",),
)  # fmt: skip


def show_test(api: Api, done: AlertTest, given: Given) -> None:
    """Show the results of a test; fail if a channel could not be notified."""
    if api.out.is_for_people:
        for one in done.deliveries:
            api.out.say(f"{one.channel}: {one.state}{f': {one.last_error}' if one.last_error else ''}")
    else:
        api.out.document(done.raw)
    if any(one.state != "delivered" for one in done.deliveries):
        raise SystemExit(1)


@click.group("channels", cls=HoraeGroup, examples=(WEBHOOK, "horae alerts channels test ops"))
def channels() -> None:
    """Write, list, test and delete channels, through which users are notified of alerts."""


@channels.command("put", examples=(WEBHOOK, EMAIL, "horae alerts channels put chat -f chat.yaml"))
@click.argument("name")
@click.option("-f", "--file", metavar="FILE", help="Read the channel from a YAML or JSON file; - is stdin.")
@options_of(CHANNEL, without=("kind",))
@remote
async def put_channel(api: Api, name: str, file: str | None, **options: Any) -> None:
    """Create a channel, or replace its definition; secret fields that are not given stay unchanged."""
    fields = given_by(CHANNEL, options)
    fields |= _server(fields["host"]) if "host" in fields else {}
    document = {**({} if file is None else read_one(file, "channel")), **CHANNEL.kind_of(fields), **fields}
    done = await api.client.alerts.channels.put(name, document)
    if not api.out.is_for_people:
        return api.out.document(done.raw)
    api.out.say(f"Channel {name} is at version {done.version}. Test it: horae alerts channels test {name}")
    if done.secret:
        api.out.say(f"The secret of the channel is {done.secret} ; it is not shown again.")
    return None


def _server(text: str) -> dict[str, Any]:
    host, colon, port = text.rpartition(":")
    if not colon:
        return {"host": text}
    if not port.isdecimal():
        raise click.UsageError(f"--smtp {text}: {port!r} is not a port. Write it as --smtp smtp.example.com:587.")
    return {"host": host, "port": int(port)}


def _to(to: dict[str, Any]) -> str:
    return str(to["url"]) if "url" in to else ", ".join(to.get("to") or to.get("urls") or [])


CHANNEL_COLUMNS: list[Column] = [
    ("NAME", "name"),
    ("KIND", "kind"),
    ("TO", lambda one: _to(one["to"])),
    ("DESCRIPTION", "description"),
]
request(
    channels, "alerts.channels.list",
    lists(CHANNEL_COLUMNS, "There are no channels. Create one: horae alerts channels put NAME --webhook URL"),
    examples=("horae alerts channels list",),
)  # fmt: skip


request(channels, "alerts.channels.get", one, name="show", examples=("horae alerts channels show ops",))


request(channels, "alerts.channels.test", show_test, examples=("horae alerts channels test ops",))


request(
    channels, "alerts.channels.delete", message("Deleted channel {name}.", deleted=True),
    examples=("horae alerts channels delete ops",),
)  # fmt: skip


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
    ("SINCE", TimeField("since")),
    ("DELIVERIES", _delivery_counts),
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
