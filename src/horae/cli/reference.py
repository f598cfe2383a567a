"""The page docs/cli.md, generated from the commands: `python -m horae.cli.reference > docs/cli.md`."""

from collections.abc import Iterator

import click

from horae.cli.lazy import HoraeCommand, HoraeGroup
from horae.cli.main import SECTIONS, cli
from horae.cli.terminal import echo

INTRODUCTION = """# The command line

`python -m horae.cli.reference` makes this page from the help texts of the commands; a test checks that it is current.

Commands are nouns with verbs after them: `horae jobs list`. `-o json` and `-o yaml` print one document, as the API
returns it; tables are for people and may change. Errors go to stderr: what happened, then what to do.

| exit code | meaning |
|---|---|
| 0 | done |
| 1 | an execution failed, a check failed, or the server could not carry out the command |
| 2 | the command line or a value in it is wrong |
| 3 | a thing that the command names does not exist |
| 4 | the current state does not allow it |

Options that take a `TIME` also take a date, as its midnight in UTC: `--from 2026-11-01` is
`--from 2026-11-01T00:00:00Z`. The API takes only the latter.

A command that asks a question reads the answer from its input. If nobody can answer, as in a script or a cron job, it
does nothing, names the option that answers in advance (`--yes`), and exits with 2.

Commands talk to the server at `HORAE_URL` (`http://127.0.0.1:8420`) with the key in `HORAE_KEY`; on the server's own
machine they find a key in `admin.key` of the data folder. Only `up`, `server`, `db`, `bench` and `doctor --offline`
open a store. To complete `horae` commands in the shell: `eval "$(_HORAE_COMPLETE=bash_source horae)"` (or
`zsh_source`).
"""


def walk(command: click.Command, name: str = "") -> Iterator[tuple[str, HoraeCommand | HoraeGroup]]:
    """Yield every command below this one, with its full name."""
    if isinstance(command, click.Group):
        context = context_of(name, command)
        for verb in command.list_commands(context):
            found = command.get_command(context, verb)
            if isinstance(found, HoraeCommand | HoraeGroup):
                yield f"{name} {verb}".strip(), found
                yield from walk(found, f"{name} {verb}".strip())


def reference() -> str:
    """Return the whole page."""
    parts = [INTRODUCTION]
    for heading, entries in SECTIONS.items():
        names = {entry.name for entry in entries}
        parts.append(f"## {heading}\n")
        for name, command in walk(cli):
            if name.split()[0] in names:
                parts.append(_about(name, command))
    return "\n".join(parts)


def _about(name: str, command: HoraeCommand | HoraeGroup) -> str:
    depth = "#" * (2 + len(name.split()))
    return f"{depth} horae {name}\n\n```text\n{command.get_help(context_of(name, command)).rstrip()}\n```\n"


def context_of(name: str, command: click.Command) -> click.Context:
    """Return the context that a command has when it is called on a terminal of 100 columns."""
    full = f"horae {name}".strip()
    settings = command.context_settings
    return click.Context(command, info_name=full, **{**settings, "max_content_width": 100, "terminal_width": 100})


if __name__ == "__main__":
    echo(reference(), nl=False)
