"""Click commands as Horae's are: groups that import their commands late, and examples under every help text."""

from importlib import import_module
from typing import Any, NamedTuple

import click

from horae.cli.times import EXPLAINED, TIME

# What people call options that have another name here.
ELSEWHERE = {"--deadline": "--within", "--sla": "--within"}


class Command(click.Command):
    """A command with examples; a test runs each of them through the parser."""

    def __init__(self, *args: Any, examples: tuple[str, ...] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.examples = examples

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            own = {name for parameter in self.params for name in parameter.opts}
            meant = ELSEWHERE.get(error.option_name)
            if meant not in own:
                raise
            message = f"{error.message} Did you mean '{meant}'?"
            raise click.NoSuchOption(error.option_name, message, ctx=ctx) from None

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if any(parameter.type is TIME for parameter in self.params):
            with formatter.section("Values"):
                formatter.write_dl([("TIME", EXPLAINED)])
        write_examples(formatter, self.examples)


class Group(click.Group):
    """A noun whose verbs are commands."""

    command_class = Command

    def __init__(self, *args: Any, examples: tuple[str, ...] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.examples = examples

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_examples(formatter, self.examples)


def write_examples(formatter: click.HelpFormatter, examples: tuple[str, ...]) -> None:
    if examples:
        with formatter.section("Example" if len(examples) == 1 else "Examples"):
            for example in examples:
                formatter.write(f"{' ' * formatter.current_indent}{example}\n")


class Entry(NamedTuple):
    """A command in the help of a group, and the module that has it."""

    name: str
    help: str
    module: str

    def load(self) -> click.Command:
        """Import the command: `sign-in` is called `sign_in` in its module."""
        command: click.Command = getattr(import_module(self.module), self.name.replace("-", "_"))
        return command


class LazyGroup(Group):
    """A group whose help is a table: a command's module is imported when the command is called."""

    def __init__(self, *args: Any, sections: dict[str, tuple[Entry, ...]], **kwargs: Any) -> None:
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
            raise click.UsageError(f"There is no command {args[0]!r}.{meant(args[0], self._entries)}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        widest = max(map(len, self._entries), default=0)
        for heading, entries in self.sections.items():
            if entries:
                with formatter.section(heading):
                    formatter.write_dl([(entry.name.ljust(widest), entry.help) for entry in entries])


def meant(name: str, known: Any) -> str:
    """A guess at what was meant, as a sentence; empty when nothing comes close."""
    import difflib

    close = difflib.get_close_matches(name, known, n=1)
    return f" Did you mean {close[0]!r}?" if close else ""
