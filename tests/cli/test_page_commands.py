"""The commands that the UI offers to copy exist, with their options."""

import re
from pathlib import Path

import click
import pytest

from horae.cli.main import cli
from horae.cli.reference import walk

UI = Path(__file__).parents[2] / "src" / "horae" / "ui"
COMMANDS = dict(walk(cli))
OFFERED = sorted(
    {
        (file.name, found[1], found[0])
        for folder in ("core", "parts", "pages")
        for file in (UI / folder).glob("*.js")
        for found in re.finditer(r'\bcli: \[((?:"[a-z][a-z-]*", )*"[a-z][a-z-]*")[^\n]*', file.read_text())
    }
)


def test_the_ui_offers_commands():
    assert len(OFFERED) > 40


@pytest.mark.parametrize(("file", "words", "line"), OFFERED)
def test_the_command_and_its_options_exist(file: str, words: str, line: str):
    name = " ".join(re.findall(r'"([a-z-]+)"', words))
    assert name in COMMANDS, f"{file}: horae {name}"
    if not isinstance(COMMANDS[name], click.Group):  # the page chooses the verb, so only the group is known here
        known = {option for param in COMMANDS[name].params for option in param.opts}
        array = line.partition("], ")[0]
        assert set(re.findall(r'"(--[a-z-]+)"', array)) <= known, f"{file}: horae {name}"
