"""`horae secrets`: values that jobs use and nobody can read back; `horae master-key`: the key that encrypts them."""

from pathlib import Path
from typing import Any

import click

from horae.cli.lazy import HoraeGroup
from horae.cli.output import Column, TimeField
from horae.cli.remote import Api, remote
from horae.cli.request import lists, message, one, request
from horae.cli.values import opened_input, read_text


@click.group(cls=HoraeGroup, examples=("horae secrets set db-password", "horae secrets list"))
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
    """Set the value of a secret: from a file, from the input, or typed twice.

    The value is not an argument, because all users of the machine can see arguments. One line break at the end of the
    value is removed.
    """
    done = await api.client.secrets.set(name, _value(name, file))
    used = f'Texts of jobs use it as secret://{name}, functions with secrets=["{name}"] as ctx.secret("{name}").'
    _print(api, done.raw, f"The secret {name} is at version {done.version}. {used}")


COLUMNS: list[Column] = [
    ("NAME", "name"),
    ("VERSION", "version"),
    ("CREATED", TimeField("createdAt")),
    ("UPDATED", TimeField("updatedAt")),
]
request(
    secrets, "secrets.list", lists(COLUMNS, "No secrets yet: horae secrets set NAME"), examples=("horae secrets list",)
)


request(secrets, "secrets.get", one, name="show", examples=("horae secrets show db-password",))


request(
    secrets, "secrets.delete", message("Deleted {name}.", deleted=True), examples=("horae secrets delete db-password",)
)


@click.group(cls=HoraeGroup, name="master-key", examples=("horae master-key rotate",))
def master_key() -> None:
    """Replace the master key, which encrypts all secrets."""


request(
    master_key, "master_key.rotate",
    message("Sealed {resealed} secrets again; {current} were already sealed with the first key."),
    examples=("horae master-key rotate",),
)  # fmt: skip


def _value(name: str, file: Path | None) -> str:
    if file is None and opened_input().isatty():
        typed: str = click.prompt(f"Value of {name}", hide_input=True, confirmation_prompt=True, err=True)
        return typed
    text = read_text("-" if file is None else str(file), remedy="Encode it, for example as base64.")
    return text.removesuffix("\n").removesuffix("\r")


def _print(api: Api, document: dict[str, Any], sentence: str) -> None:
    if api.out.is_for_people:
        api.out.say(sentence)
    else:
        api.out.document(document)
