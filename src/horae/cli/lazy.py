"""Click commands and groups as Horae uses them.

Groups import their commands late, and every help text ends with examples.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from typing import Any, NamedTuple

import click

from horae.cli.times import TIME, TIME_HELP
from horae.feature import Command as FeatureCommand
from horae.feature import installed

# Options that users know from other systems, and the names of these options in Horae.
OTHER_NAMES = {"--deadline": "--within", "--sla": "--within"}
# Every command sets these names itself: click builds a command's help option once, with the names that it first finds.
HELP_OPTIONS = (
    "-h",
    "--help",
)


class HoraeCommand(click.Command):
    """A command with examples; a test runs each example through the parser."""

    def __init__(self, *args: Any, examples: tuple[str, ...] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.examples = examples
        self.context_settings.setdefault("help_option_names", HELP_OPTIONS)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            own = {name for parameter in self.params for name in parameter.opts}
            meant = OTHER_NAMES.get(error.option_name)
            if meant not in own:
                raise
            message = f"{error.message} Did you mean '{meant}'?"
            raise click.NoSuchOption(error.option_name, message, ctx=ctx) from None

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if any(parameter.type is TIME for parameter in self.params):
            with formatter.section("Values"):
                formatter.write_dl([("TIME", TIME_HELP)])
        write_examples(formatter, self.examples)


class HoraeGroup(click.Group):
    """A group of commands about one noun."""

    command_class = HoraeCommand

    def __init__(self, *args: Any, examples: tuple[str, ...] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.examples = examples
        self.context_settings.setdefault("help_option_names", HELP_OPTIONS)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_examples(formatter, self.examples)


def write_examples(formatter: click.HelpFormatter, examples: tuple[str, ...]) -> None:
    if examples:
        with formatter.section("Example" if len(examples) == 1 else "Examples"):
            for example in examples:
                formatter.write(f"{' ' * formatter.current_indent}{example}\n")


class CommandEntry(NamedTuple):
    """A command in the help of a group, with the module that defines it."""

    name: str
    help: str
    module: str
    object: str = ""

    def load(self) -> click.Command:
        """Import the command from the variable `object` of the module, by default its name with underscores."""
        name = self.object or self.name.replace("-", "_")
        command: click.Command = getattr(import_module(self.module), name)
        return command


def feature_commands(group: str = "") -> Iterator[tuple[FeatureCommand, CommandEntry]]:
    """Yield each command that features add to a group or, without a group, to the sections of `horae --help`."""
    for feature in installed():
        for row in feature.commands:
            if row.group == group:
                module, _, name = row.target.partition(":")
                yield row, CommandEntry(row.name, row.help, module, name)


class ExtensibleGroup(HoraeGroup):
    """A group of the kernel to which features add commands; each is imported when it is called or listed."""

    @cached_property
    def _feature_commands(self) -> dict[str, CommandEntry]:
        return {entry.name: entry for _, entry in feature_commands(self.name or "")}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*super().list_commands(ctx), *self._feature_commands])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = self._feature_commands.get(cmd_name)
        return super().get_command(ctx, cmd_name) if entry is None else entry.load()


def with_features(sections: Mapping[str, Sequence[CommandEntry]]) -> dict[str, tuple[CommandEntry, ...]]:
    """Return the sections of `horae --help` with the commands of features, each after the command that it names."""
    return {heading: tuple(_ordered(heading, entries)) for heading, entries in sections.items()}


def _ordered(heading: str, entries: Sequence[CommandEntry]) -> Iterator[CommandEntry]:
    rows = [(row.after, entry) for row, entry in feature_commands() if row.section == heading]
    yield from (entry for after, entry in rows if not after)
    for own in entries:
        yield own
        yield from (entry for after, entry in rows if after == own.name)


class LazyGroup(HoraeGroup):
    """A group whose help comes from a table; a command's module is imported when the command is called."""

    def __init__(self, *args: Any, sections: dict[str, tuple[CommandEntry, ...]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.sections = sections
        self._entries = {entry.name: entry for entries in sections.values() for entry in entries}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._entries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = self._entries.get(cmd_name)
        return None if entry is None else entry.load()

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in self._entries:
            raise click.UsageError(f"There is no command {args[0]!r}.{suggestion(args[0], self._entries)}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        widest = max(map(len, self._entries), default=0)
        for heading, entries in self.sections.items():
            if entries:
                with formatter.section(heading):
                    formatter.write_dl([(entry.name.ljust(widest), entry.help) for entry in entries])


def suggestion(name: str, known: Any) -> str:
    """Return a sentence that suggests a similar name; empty if no name is similar."""
    import difflib

    close = difflib.get_close_matches(name, known, n=1)
    return f" Did you mean {close[0]!r}?" if close else ""
