"""`horae secrets`: values that jobs refer to and nobody reads."""

import sys
from pathlib import Path
from typing import Any

import click

from horae.cli.lazy import Group
from horae.cli.output import Column
from horae.cli.remote import Api, page_options, remote


@click.group(cls=Group, examples=("horae secrets set db-password", "horae secrets list"))
def secrets() -> None:
    """Set and remove secrets, which jobs refer to as secret://NAME."""


@secrets.command(
    "set",
    examples=(
        "horae secrets set db-password",
        "horae secrets set tls-key --file key.pem",
    ),
)
@click.argument("name")
@click.option("--file", type=click.Path(path_type=Path, dir_okay=False), help="A file with the value.")
@remote
async def set_(api: Api, name: str, file: Path | None) -> None:
    """Give a secret a value: from a file, from the input, or as somebody types it twice.

    It is no argument, because arguments are seen by everybody on the machine. One line break at its end is left out.
    """
    done = await api.client.secrets.set(name, _value(name, file))
    used = f'Texts of jobs use it as secret://{name}, functions with secrets=["{name}"] as ctx.secret("{name}").'
    _told(api, done.raw, f"{name} has a value, its {_ordinal(done.version)}. {used}")


@secrets.command("list", examples=("horae secrets list",))
@page_options
@remote
async def list_(api: Api, **paging: Any) -> None:
    """List secrets, without their values."""
    columns: list[Column] = [
        ("NAME", "name"),
        ("VERSION", "version"),
        ("CREATED", lambda one: api.out.age(one["createdAt"])),
        ("SET", lambda one: api.out.age(one["updatedAt"])),
    ]
    api.out.list((await api.client.secrets.list(**paging)).raw, columns, "No secrets yet: horae secrets set NAME")


@secrets.command(examples=("horae secrets show db-password",))
@click.argument("name")
@remote
async def show(api: Api, name: str) -> None:
    """Show what is known of a secret, and which jobs refer to it."""
    api.out.one((await api.client.secrets.get(name)).raw)


@secrets.command(examples=("horae secrets delete db-password",))
@click.argument("name")
@click.option("--force", is_flag=True, help="Also if jobs refer to it: their executions fail then.")
@remote
async def delete(api: Api, name: str, force: bool) -> None:
    """Remove a secret."""
    await api.client.secrets.delete(name, force=force)
    _told(api, {"name": name, "deleted": True}, f"{name} is removed.")


@secrets.command(examples=("horae secrets rotate",))
@remote
async def rotate(api: Api) -> None:
    """Seal all secrets with the first master key, so that older ones can be taken away."""
    done = (await api.client.secrets.rotate()).raw
    said = f"{done['resealed']} secrets were sealed anew, {done['current']} were sealed with the first key already."
    _told(api, done, said)


def _value(name: str, file: Path | None) -> str:
    if file is None and sys.stdin.isatty():
        typed: str = click.prompt(f"Value of {name}", hide_input=True, confirmation_prompt=True, err=True)
        return typed
    try:
        data = sys.stdin.buffer.read() if file is None else file.read_bytes()
        return data.decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise click.UsageError("The value is not text in UTF-8. Encode it, for example as base64.") from None
    except OSError as error:
        raise click.UsageError(f"{file} cannot be read: {error.strerror}.") from None


def _ordinal(number: int) -> str:
    return {1: "first", 2: "second", 3: "third"}.get(number, f"{number}th")


def _told(api: Api, document: dict[str, Any], said: str) -> None:
    if api.out.is_for_people:
        api.out.say(said)
    else:
        api.out.document(document)
