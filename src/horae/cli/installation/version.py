"""`horae version`: the versions of Horae and its main dependencies."""

import click

from horae.cli.lazy import HoraeCommand
from horae.cli.output import Printer
from horae.cli.remote import output_option
from horae.env import system_env
from horae.version import __version__


@click.command(cls=HoraeCommand, examples=("horae version", "horae version -o json"))
@output_option
def version(output: str) -> None:
    """Show the versions of Horae and its main dependencies."""
    Printer(output, system_env().now).one(versions())  # type: ignore[arg-type]


def versions() -> dict[str, str]:
    import platform
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed

    from horae.model.fleet.protocol import PROTOCOL
    from horae.store.sqlite.library import NAME, VERSION

    found = {
        "horae": __version__,
        "protocol": str(PROTOCOL),
        "python": platform.python_version(),
        "sqlite": f"{VERSION} ({NAME})",
        "platform": platform.platform(),
    }
    for package in ("asyncpg", "httptools", "msgspec"):
        try:
            found[package] = installed(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found
