"""Help texts are complete, examples parse, and help loads no heavy modules."""

import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from horae.cli.lazy import HoraeCommand, HoraeGroup
from horae.cli.main import SECTIONS, cli
from horae.cli.reference import context_of, reference, walk

DOCS = Path(__file__).parents[2] / "docs" / "cli.md"
COMMANDS = dict(walk(cli))
HEAVY = {"rich", "httpx2", "sqlalchemy", "httptools", "yaml", "structlog", "asyncio", "msgspec"}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_help_line_and_an_example(name):
    command = COMMANDS[name]
    first = (command.help or "").partition("\n")[0]
    assert first.endswith("."), "a sentence"
    assert len(command.get_short_help_str(100)) > 10
    assert command.examples, "an example"
    for example in command.examples:
        assert example.startswith("horae ")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_example_parses(name):
    for example in COMMANDS[name].examples:
        command, args = cli, shlex.split(example)[1:]
        context = context_of("", cli)
        while isinstance(command, click.Group):
            _, command, args = command.resolve_command(context, args)
            assert command is not None, example
            context = click.Context(command, info_name=command.name, parent=context)
        command.make_context(command.name, args, parent=context.parent)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_missing_argument_is_named(name):
    required = [p for p in COMMANDS[name].params if isinstance(p, click.Argument) and p.required]
    if required:
        said = CliRunner().invoke(cli, name.split())
        assert f"Missing argument '{required[0].make_metavar(context_of(name, cli))}'" in said.stderr
        assert said.exit_code == 2


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_has_a_help_text(name):
    silent = [p.name for p in COMMANDS[name].params if isinstance(p, click.Option) and not p.help]
    assert silent == []


def test_the_list_of_commands_matches_their_help():
    for section in SECTIONS.values():
        for entry in section:
            first = COMMANDS[entry.name].help.partition("\n\n")[0].replace("\n", " ").split(";")[0]
            assert first.startswith(entry.help.split(";")[0].rstrip(".")), entry.name


def test_a_command_has_both_help_options_without_its_group():
    """Click remembers the options of the first call, which may be one without the group, such as a test's."""
    for kind in (HoraeCommand, HoraeGroup):
        command = kind("alone")
        alone = command.make_context("alone", [], resilient_parsing=True)
        assert command.get_help_option(alone).opts == ["-h", "--help"]


def test_help_loads_nothing_heavy():
    code = "import sys; from horae.cli.main import cli; cli(['--help'], standalone_mode=False); print(*sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    loaded = set(shown.splitlines()[-1].split())
    assert "horae.cli.main" in loaded
    assert loaded & HEAVY == set()


def test_help_fits_a_terminal():
    for name, command in COMMANDS.items():
        text = command.get_help(context_of(name, command)).partition("\nExample")[0]
        assert max(map(len, text.splitlines())) <= 100


def test_every_command_is_documented():
    assert DOCS.read_text() == reference(), "Run: python -m horae.cli.reference > docs/cli.md"


def test_options_of_other_systems_are_suggested_by_their_name_here():
    said = CliRunner().invoke(cli, ["jobs", "create", "a", "--command", "x", "--deadline", "1h"]).stderr
    assert "Did you mean '--within'?" in said


def test_a_misspelt_variable_is_named_by_every_command():
    said = CliRunner().invoke(cli, ["version"], env={"HORAE_PROT": "1"}).stderr
    assert said == "Warning: HORAE_PROT is not a setting of Horae. Did you mean HORAE_PORT?\n"
