"""Translation of the server's messages about a job's fields into the command line's options."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from horae.cli.executions.failing import FLAGS
from horae.cli.times import TIME
from horae.errors import BadInput
from horae.model.definitions.job import JOB
from horae.model.triggers.decisions.schedule import TIMES

# The option of each field, the most specific field first: `schedule` matches if none of its members does.
_FLAGS = {
    **{f"schedule.{row.name}": f"--{row.flag}" for row in TIMES.rows if row.name != "cron"},
    **FLAGS,
    "http.method": "--method",
    "http.redirects": "--redirects",
    "command.shell": "--shell",
    "command.user": "--user",
    "command.limits": "--process-limit",
    "python.limits": "--process-limit",
    "name": "NAME",
    **{row.name: f"--{row.flag}" for row in JOB.rows if row.flag},
}
_AS_JSON = re.compile(r'[{\[]"\w|"\w+":')  # a remedy that shows JSON


@contextmanager
def in_flags(options: tuple[Callable[..., Any], ...]) -> Iterator[None]:
    """Replace the field in an error by the option that gave it; replace a remedy in JSON by the help of that option."""
    try:
        yield
    except BadInput as error:
        flag = flag_of(str(error.fields.get("field", "")))
        if not flag:
            raise
        remedy = help_of(flag, options) if _AS_JSON.search(error.remedy) else error.remedy
        raise BadInput(f"{flag}: {error.detail}", remedy, **error.fields) from None


def flag_of(field: str) -> str:
    """Return the option that gives a field; empty if none does."""
    for name, flag in _FLAGS.items():
        if field == name or field.startswith((f"{name}.", f"{name}[")):
            return flag
    return ""


def help_of(flag: str, options: tuple[Callable[..., Any], ...]) -> str:
    """Return the notation of an option with its help."""

    @click.command
    def holder() -> None: ...

    for option in options:
        option(holder)
    for made in holder.params:
        if isinstance(made, click.Option) and flag in made.opts:
            metavar = "TIME" if made.type is TIME else made.metavar or ""
            return f"{flag} {metavar}: {made.help}"
    return ""
