"""`horae alerts rules`: the rules that raise alerts."""

from typing import Any

import click

from horae.cli.fields import given_by, options_of
from horae.cli.lazy import HoraeGroup
from horae.cli.output import Column
from horae.cli.remote import Api, remote
from horae.cli.request import Given, lists, message, one, request
from horae.cli.values import read_one
from horae.features.alerts.client import AlertTest
from horae.features.alerts.model.rule import RULE

PUT = "horae alerts rules put nightly --kind failures-in-a-row --job report --count 3 --channel ops"
SWITCH = "horae alerts rules put backups --kind missing-success --job 'backup-*' --since 26h --channel ops"


@click.group("rules", cls=HoraeGroup, examples=(PUT, "horae alerts rules list"))
def rules() -> None:
    """Write, list, pause and delete rules, which raise alerts."""


@rules.command(examples=(PUT, SWITCH, "horae alerts rules put nightly -f nightly.yaml"))
@click.argument("name")
@click.option("-f", "--file", metavar="FILE", help="Read the rule from a YAML or JSON file; - is stdin.")
@options_of(RULE)
@remote
async def put(api: Api, name: str, file: str | None, **options: Any) -> None:
    """Create a rule, or replace its definition. Each kind has its own fields."""
    document = {**({} if file is None else read_one(file, "rule")), **given_by(RULE, options)}
    done = await api.client.alerts.rules.put(name, document)
    if not api.out.is_for_people:
        return api.out.document(done.raw)
    channels = ", ".join(done.raw["channels"]) or "no channel; name one with --channel"
    return api.out.say(f"Rule {name} is at version {done.version}; it notifies {channels}.")


COLUMNS: list[Column] = [
    ("NAME", "name"),
    ("KIND", "kind"),
    ("STATE", "state"),
    ("FIRING", "firing"),
    ("CHANNELS", lambda one: ", ".join(one["channels"])),
    ("DESCRIPTION", "description"),
]
request(
    rules, "alerts.rules.list",
    lists(COLUMNS, "There are no rules. Write one: horae alerts rules put NAME --kind KIND"),
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
