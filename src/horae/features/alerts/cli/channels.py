"""`horae alerts channels`: the channels through which users are notified of alerts."""

from typing import Any

import click

from horae.cli.fields import given_by, options_of
from horae.cli.lazy import HoraeGroup
from horae.cli.output import Column
from horae.cli.remote import Api, remote
from horae.cli.request import lists, message, one, request
from horae.cli.values import read_one
from horae.features.alerts.cli.rules import show_test
from horae.features.alerts.model.channel import CHANNEL

WEBHOOK = "horae alerts channels put ops --webhook https://example.com/alerts"
EMAIL = (
    "horae alerts channels put mail --email ops@example.com --from horae@example.com --smtp smtp.example.com"
    " --user horae --password secret://smtp-password"
)


@click.group("channels", cls=HoraeGroup, examples=(WEBHOOK, "horae alerts channels test ops"))
def channels() -> None:
    """Write, list, test and delete channels, through which users are notified of alerts."""


@channels.command(examples=(WEBHOOK, EMAIL, "horae alerts channels put chat -f chat.yaml"))
@click.argument("name")
@click.option("-f", "--file", metavar="FILE", help="Read the channel from a YAML or JSON file; - is stdin.")
@options_of(CHANNEL, without=("kind",))
@remote
async def put(api: Api, name: str, file: str | None, **options: Any) -> None:
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


COLUMNS: list[Column] = [
    ("NAME", "name"),
    ("KIND", "kind"),
    ("TO", lambda one: _to(one["to"])),
    ("DESCRIPTION", "description"),
]
request(
    channels, "alerts.channels.list",
    lists(COLUMNS, "There are no channels. Create one: horae alerts channels put NAME --webhook URL"),
    examples=("horae alerts channels list",),
)  # fmt: skip


request(channels, "alerts.channels.get", one, name="show", examples=("horae alerts channels show ops",))


request(channels, "alerts.channels.test", show_test, examples=("horae alerts channels test ops",))


request(
    channels, "alerts.channels.delete", message("Deleted channel {name}.", deleted=True),
    examples=("horae alerts channels delete ops",),
)  # fmt: skip
