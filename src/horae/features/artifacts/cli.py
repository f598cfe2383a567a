"""`horae executions artifacts`: files that executions stored."""

import os
import sys
from codecs import getincrementaldecoder
from collections.abc import AsyncIterable
from pathlib import Path

import click

from horae.cli.lazy import HoraeCommand
from horae.cli.output import Column
from horae.cli.remote import Api, remote
from horae.cli.terminal import echo

EXAMPLES = (
    "horae executions artifacts EXECUTION",
    "horae executions artifacts EXECUTION report.html",
    "horae executions artifacts EXECUTION data.csv --to -",
)


@click.command(cls=HoraeCommand, examples=EXAMPLES)
@click.argument("execution")
@click.argument("name", required=False)
@click.option(
    "--to",
    metavar="FILE",
    help="The file to write, or - for stdout; by default a file with the artifact's name in the current folder.",
)
@click.option("--force", is_flag=True, help="Replace an existing file.")
@remote
async def artifacts(api: Api, execution: str, name: str | None, to: str | None, force: bool) -> None:
    """List the files that an execution stored, or download one of them."""
    if name is None:
        page = await api.client.executions.artifacts(execution)
        shown: list[Column] = [
            ("NAME", "name"),
            ("SIZE", "size"),
            ("TYPE", "type"),
            ("ATTEMPT", "attempt"),
            ("CREATED", lambda one: api.out.age(one.get("createdAt"))),
        ]
        api.out.list(page.raw, shown, "This execution stored no files.")
        return
    pieces = api.client.executions.read_artifact(execution, name)
    if to == "-":
        return await _write_out(pieces)
    path = Path(to or name.rpartition("/")[2])
    if path.exists() and not force:
        raise click.UsageError(f"{path} exists. Name another file with --to, or replace it with --force.")
    part = path.with_name(f".{path.name[:40]}.{os.getpid()}.part")  # a whole name might become too long
    try:
        with part.open("wb") as file:
            async for piece in pieces:
                file.write(piece)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    api.out.say(f"{path}: {path.stat().st_size} bytes.")


async def _write_out(pieces: AsyncIterable[bytes]) -> None:
    """Write the content of a file to stdout unchanged, but on a terminal as text with visible control characters."""
    if sys.stdout.isatty():
        decoder = getincrementaldecoder("utf-8")("replace")
        async for piece in pieces:
            echo(decoder.decode(piece), nl=False)
        echo(decoder.decode(b"", final=True), nl=False)
        return
    async for piece in pieces:
        sys.stdout.buffer.write(piece)
    sys.stdout.buffer.flush()
