"""`horae users`: users who sign in, and their permissions."""

from typing import Any

import click

from horae.cli.lazy import HoraeGroup
from horae.cli.output import Column, TimeField
from horae.cli.prompts import prompt
from horae.cli.remote import Api, remote
from horae.cli.request import lists, message, one, request
from horae.cli.values import opened_input
from horae.model.tenancy.principal import NESTED, PERMISSIONS


@click.group(cls=HoraeGroup, examples=("horae users create ada --role editor", "horae users grant ada --role viewer"))
def users() -> None:
    """Manage users and their permissions."""


def _role(command: Any) -> Any:
    """Add the options for a user's role and permissions in the namespace."""
    permission = click.option(
        "--permission",
        "permissions",
        multiple=True,
        type=click.Choice(PERMISSIONS),
        help="A permission in addition to the role; repeatable.",
    )
    return click.option("--role", required=True, type=click.Choice(NESTED), help="The user's role in the namespace.")(
        permission(command)
    )


def _password(from_input: bool) -> str:
    """Return a password from the first line of stdin, or ask the user to type it twice."""
    if from_input:
        return opened_input().readline().rstrip("\n")
    return prompt("Password", "--password-stdin", hide_input=True, confirmation_prompt=True)


from_input = click.option("--password-stdin", "from_input", is_flag=True, help="Read the password from stdin.")


@users.command(
    examples=("horae users create ada --role editor", "horae users create ada --role admin --password-stdin")
)
@click.argument("name")
@_role
@from_input
@remote
async def create(api: Api, name: str, role: str, permissions: tuple[str, ...], from_input: bool) -> None:
    """Create a user with a password and a role in this namespace."""
    user = await api.client.users.create(name, _password(from_input), role=role, permissions=permissions)
    _print(api, user.raw, f"{name} may now sign in with the role {role}.")


COLUMNS: list[Column] = [
    ("NAME", "name"),
    ("ACTIVE", "active"),
    ("SIGNS IN", lambda one: "password" if one["hasPassword"] else "identity provider"),
    ("ROLES", lambda one: ", ".join(f"{m['namespace']}: {m['role']}" for m in one["memberships"])),
    ("SIGNED IN", TimeField("signedInAt")),
]
request(
    users, "users.list", lists(COLUMNS, "There are no users. Create one with: horae users create NAME --role ROLE"),
    examples=("horae users list",),
)  # fmt: skip


request(users, "users.get", one, name="show", examples=("horae users show ada",))


@users.command(
    examples=("horae users grant ada --role operator", "horae users grant ada --role editor --namespace etl")
)
@click.argument("name")
@_role
@remote
async def grant(api: Api, name: str, role: str, permissions: tuple[str, ...]) -> None:
    """Grant a user a role in this namespace."""
    user = await api.client.users.grant(name, role=role, permissions=permissions)
    _print(api, user.raw, f"{name} now has the role {role}.")


request(
    users, "users.revoke", message("{name} no longer has access to this namespace.", revoked=True),
    examples=("horae users revoke ada",),
)  # fmt: skip


@users.command(examples=("horae users password ada",))
@click.argument("name")
@from_input
@remote
async def password(api: Api, name: str, from_input: bool) -> None:
    """Set a new password for a user, and sign the user out everywhere."""
    _print(api, (await api.client.users.edit(name, password=_password(from_input))).raw, f"{name} has a new password.")


@users.command(examples=("horae users disable ada",))
@click.argument("name")
@remote
async def disable(api: Api, name: str) -> None:
    """Sign a user out, and refuse sign-ins until the user is enabled again."""
    _print(api, (await api.client.users.edit(name, active=False)).raw, f"{name} is signed out and disabled.")


@users.command(examples=("horae users enable ada",))
@click.argument("name")
@remote
async def enable(api: Api, name: str) -> None:
    """Let a disabled user sign in again."""
    _print(api, (await api.client.users.edit(name, active=True)).raw, f"{name} may sign in again.")


request(users, "users.delete", message("Deleted {name}.", deleted=True), examples=("horae users delete ada",))


def _print(api: Api, document: dict[str, Any], sentence: str) -> None:
    if api.out.is_for_people:
        api.out.say(sentence)
    else:
        api.out.document(document)
