"""`horae config`: the settings with their origins, and the features."""

from pathlib import Path

import click

from horae.cli.lazy import HoraeGroup
from horae.cli.output import Column, Printer
from horae.cli.remote import config_option, output_option
from horae.config.load import load
from horae.config.show import rows
from horae.env import system_env
from horae.feature import enabled, installed


@click.group(cls=HoraeGroup, examples=("horae config show --origin", "horae config features"))
def config() -> None:
    """Show the settings with their origins, and the enabled features."""


@config.command(examples=("horae config show", "horae config show --origin", "horae config show -o json"))
@click.option("--origin", is_flag=True, help="Also show the origin of each value.")
@config_option
@output_option
def show(origin: bool, config: Path | None, output: str) -> None:
    """Show the value of every setting; secrets are masked."""
    loaded = load(file=config)
    out = Printer(output, system_env().now)  # type: ignore[arg-type]
    shown = rows(loaded)
    columns: list[Column] = [("SETTING", "name"), ("VALUE", "value")]
    if origin:
        columns += [("ORIGIN", "origin")]
    else:
        columns += [("MEANING", "meaning")]
    if out.is_for_people:
        return out.table(shown, columns)
    kept = ("name", "value", "origin", "variable") if origin else ("name", "value")
    return out.document({"items": [{name: row[name] for name in kept} for row in shown]})


@config.command(examples=("horae config features", "horae config features -o json"))
@config_option
@output_option
def features(config: Path | None, output: str) -> None:
    """List the features of a server with these settings: on, switched off, or always on."""
    on = enabled(load(file=config).settings.features)
    rows = [
        {
            "name": feature.name,
            "state": "always" if feature.required else "on" if feature in on else "off",
            "about": feature.about,
        }
        for feature in sorted(installed(), key=lambda one: one.name)
    ]
    out = Printer(output, system_env().now)  # type: ignore[arg-type]
    if out.is_for_people:
        return out.table(rows, [("FEATURE", "name"), ("STATE", "state"), ("ABOUT", "about")])
    return out.document({"items": rows})
