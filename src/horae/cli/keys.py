"""`horae keys`: who may talk to Horae."""

from typing import Any

import click

from horae.cli.lazy import Group
from horae.cli.output import Column
from horae.cli.remote import Api, page_options, remote


@click.group(cls=Group, examples=("horae keys create ci", "horae keys create fleet --role worker"))
def keys() -> None:
    """Create, list and revoke keys."""


@keys.command(examples=("horae keys create fleet --role worker", "horae keys create ci --expires-in 90d -o json"))
@click.argument("name")
@click.option(
    "--role", type=click.Choice(["admin", "worker"]), default="admin", show_default=True, help="What it may do."
)
@click.option("--expires-in", metavar="SPAN", help="End it after so long, as 90d.")
@remote
async def create(api: Api, name: str, role: str, expires_in: str | None) -> None:
    """Create a key. Its text is shown this once."""
    from horae.model.duration import parse_duration
    from horae.model.instant import format_instant

    ends = format_instant(api.env.now() + parse_duration(expires_in, field="--expires-in")) if expires_in else None
    made = (await api.client.keys.create(name, role=role, expires_at=ends)).raw
    if not api.out.is_for_people:
        return api.out.document(made)
    click.echo(made["key"])
    click.echo(f"This is the key of {name!r} ({role}). It is not shown again.", err=True)
    return None


@keys.command("list", examples=("horae keys list",))
@page_options
@remote
async def list_(api: Api, **paging: Any) -> None:
    """List keys; their texts are not kept."""
    page = await api.client.keys.list(**paging)
    columns: list[Column] = [
        ("ID", "keyId"),
        ("NAME", "name"),
        ("ROLE", "role"),
        ("CREATED", lambda one: api.out.age(one.get("createdAt"))),
        ("USED", lambda one: api.out.age(one.get("lastUsedAt"))),
        ("EXPIRES", lambda one: api.out.age(one.get("expiresAt"))),
        ("REVOKED", lambda one: api.out.age(one.get("revokedAt"))),
    ]
    api.out.list(page.raw, columns, "There are no keys.")


@keys.command(examples=("horae keys revoke 3f2a9c",))
@click.argument("key_id")
@remote
async def revoke(api: Api, key_id: str) -> None:
    """Revoke a key by its id: at once here, within seconds on other servers."""
    await api.client.keys.delete(key_id)
    if not api.out.is_for_people:
        return api.out.document({"keyId": key_id, "revoked": True})
    api.out.say(f"Revoked {key_id}.")
    return None
