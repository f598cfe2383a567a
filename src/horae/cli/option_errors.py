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

# The option that sets each field. The first match counts, and a field also matches its members, so specific fields come
# first: an error in `schedule.x` gets the option of `schedule` only if `schedule.x` has no option of its own.
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
def errors_as_options(options: tuple[Callable[..., Any], ...]) -> Iterator[None]:
    """Put the option that set the wrong field before an error's detail.

    If the remedy shows JSON, show the help of the option instead.
    """
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
    """Return an option with its metavar and help, such as "--cron EXPR: ..."; empty if no option has this flag."""

    @click.command
    def holder() -> None: ...

    for option in options:
        option(holder)
    for made in holder.params:
        if isinstance(made, click.Option) and flag in made.opts:
            metavar = "TIME" if made.type is TIME else made.metavar or ""
            return f"{flag} {metavar}: {made.help}"
    return ""
