"""Click commands as Horae's are: groups that import their commands late, and examples under every help text."""

from importlib import import_module
from typing import Any

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


class LazyGroup(Group):
    """A group whose help is a table: a command's module is imported when the command is called.

    `sections` maps a heading to commands and their help lines; a command `up` is `up` of the module `up` of `package`.
    """

    def __init__(
        self, *args: Any, sections: dict[str, dict[str, str]], package: str = "horae.cli", **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self._package = package
        self.sections = sections
        self._lines = {name: line for section in sections.values() for name, line in section.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._lines)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._lines:
            return None
        module = cmd_name.replace("-", "_")
        command: click.Command = getattr(import_module(f"{self._package}.{module}"), module)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in self._lines:
            raise click.UsageError(f"There is no command {args[0]!r}.{meant(args[0], self._lines)}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        widest = max(map(len, self._lines), default=0)
        for heading, lines in self.sections.items():
            if lines:
                with formatter.section(heading):
                    formatter.write_dl([(name.ljust(widest), line) for name, line in lines.items()])


def meant(name: str, known: Any) -> str:
    """A guess at what was meant, as a sentence; empty when nothing comes close."""
    import difflib

    close = difflib.get_close_matches(name, known, n=1)
    return f" Did you mean {close[0]!r}?" if close else ""
