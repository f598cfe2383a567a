"""`horae keys`: API keys and their permissions."""

from typing import Any

import click

from horae.cli.lazy import HoraeGroup
from horae.cli.output import Column, TimeField
from horae.cli.remote import Api, remote
from horae.cli.request import Given, lists, request
from horae.cli.terminal import echo
from horae.cli.times import SPAN
from horae.client.views import ApiDocument
from horae.env import Micros
from horae.model.tenancy.principal import PERMISSIONS, ROLES


@click.group(cls=HoraeGroup, examples=("horae keys create ci --role operator", "horae keys rotate 3f2a9c --overlap 1h"))
def keys() -> None:
    """Create, list, rotate and revoke keys."""


@keys.command(
    examples=(
        "horae keys create fleet --role worker --queue etl",
        "horae keys create ci --role operator --jobs 'etl-*' --expires 90d -o json",
        "horae keys create platform --role editor --permission commands",
        "horae keys create dashboard --role viewer --rate 100/1s",
    )
)
@click.argument("name")
@click.option(
    "--role",
    type=click.Choice(ROLES),
    default="admin",
    show_default=True,
    help="What the key may do. A viewer reads, an operator also runs and pauses existing jobs, an editor also defines"
    " jobs, an admin also manages access; a worker executes jobs.",
)
@click.option(
    "--permission",
    "permissions",
    type=click.Choice(PERMISSIONS),
    multiple=True,
    help="A permission in addition to the role: to define commands, to read sealed values, or to manage the"
    " installation with all its namespaces; repeatable.",
)
@click.option("--queue", "queues", multiple=True, metavar="QUEUE", help="Restrict the key to this queue; repeatable.")
@click.option(
    "--jobs",
    multiple=True,
    metavar="PATTERN",
    help="Restrict the key to jobs whose names match this pattern, such as 'etl-*'; repeatable.",
)
@click.option(
    "--rate",
    metavar="RATE",
    help="The highest rate of requests that each server accepts from this key, such as 100/1s; workers' requests do"
    " not count.",
)
@click.option("--expires", "--expires-in", "expires", type=SPAN, help="The key expires after this time, such as 90d.")
@remote
async def create(api: Api, name: str, role: Any, expires: Micros | None, **scope: Any) -> None:
    """Create a key. Its text is shown only now."""
    from horae.model.base.instant import format_instant

    ends = None if expires is None else format_instant(api.env.now() + expires)
    key = (await api.client.keys.create(name, role=role, expires_at=ends, **scope)).raw
    _show_key(api, key, f"This is the key of {name!r} ({role}). It will not be shown again.")


def _replaced(api: Api, made: ApiDocument, given: Given) -> None:
    ends = given["overlap"] or "1d"
    old = f"key {given['key_id']}, which stays valid for another {ends}"
    _show_key(api, made.raw, f"This new key will not be shown again. It replaces {old}.")


request(
    keys, "keys.rotate", _replaced,
    examples=("horae keys rotate 3f2a9c", "horae keys rotate 3f2a9c --overlap 1h"),
)  # fmt: skip


def _show_key(api: Api, made: dict[str, Any], note: str) -> None:
    """Print only the key on stdout, for pipes, and the note on stderr."""
    if not api.out.is_for_people:
        return api.out.document(made)
    echo(made["key"])
    echo(note, err=True)
    return None


def _scope(key: dict[str, Any]) -> str:
    """Describe the restrictions of a key and its permissions beyond its role."""
    beyond = [f"+{permission}" for permission in key.get("permissions") or ()]
    queues = [f"queue {queue}" for queue in key.get("queues") or ()]
    rate = [key["rate"]] if key.get("rate") else []
    return ", ".join([*beyond, *queues, *(key.get("jobs") or ()), *rate])


COLUMNS: list[Column] = [
    ("ID", "keyId"),
    ("NAME", "name"),
    ("ROLE", "role"),
    ("SCOPE", _scope),
    ("CREATED", TimeField("createdAt")),
    ("USED", TimeField("lastUsedAt")),
    ("EXPIRES", TimeField("expiresAt")),
    ("REVOKED", TimeField("revokedAt")),
]
request(
    keys, "keys.list", lists(COLUMNS, "There are no keys."),
    examples=("horae keys list", "horae keys list --namespace billing"),
)  # fmt: skip


def _revoked(api: Api, nothing: None, given: Given) -> None:
    if not api.out.is_for_people:
        return api.out.document({"keyId": given["key_id"], "revoked": True})
    return api.out.say(f"Revoked key {given['key_id']}.")


request(keys, "keys.delete", _revoked, name="revoke", examples=("horae keys revoke 3f2a9c",))
