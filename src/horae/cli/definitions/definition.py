"""The options that define a job, for `jobs create` and `jobs edit`."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import click

from horae.cli.executions import failing
from horae.cli.fields import option_of, unset_option, values_of, with_options, with_resets
from horae.cli.option_errors import errors_as_options, flag_of
from horae.cli.values import pairs, params, read_documents
from horae.errors import BadInput
from horae.model.definitions.job import JOB
from horae.model.fields.table import Row
from horae.model.tenancy.namespace import DEFAULTS
from horae.model.triggers.decisions.schedule import KINDS, TIMES

_EMPTY: tuple[Any, ...] = (None, "", [], {})
_LIMITED = "Write --limit '${params.customer}=2,10/1m': a number, a rate, or both."

# Fields that have special options on the command line.
_OWN: dict[str, tuple[Any, ...]] = {
    "command": (
        click.option(
            "--command",
            metavar="COMMAND",
            help="Run a program; the line is split like in a shell, but no shell runs it.",
        ),
        click.option("--shell", metavar="LINE", help="Run a line with a shell."),
        click.option("--user", metavar="USER", help="The user that runs the command, on a worker that runs as root."),
        click.option(
            "--process-limit",
            multiple=True,
            metavar="NAME=VALUE",
            help="A limit of the process: memory=512MiB, cpu=30s, processes=64, files, output or fileSize; repeatable.",
        ),
    ),
    "python": (click.option("--python", metavar="FUNCTION", help="Call a function that a worker's app registers."),),
    "http": (
        click.option("--http", metavar="URL", help="Send an HTTP request."),
        click.option("--method", metavar="METHOD", help="The request's method; POST by default."),
        click.option("--redirects", type=click.IntRange(0, 10), metavar="N", help="The most redirects to follow."),
    ),
    "schedule": (
        click.option(
            "--schedule",
            "--cron",
            "schedule",
            metavar="CRON",
            help="When the job runs: five cron fields, such as '0 9 * * MON-FRI'.",
        ),
        *(option_of(row, TIMES) for row in TIMES.rows if row.name != "cron"),
    ),
    "retry": (
        click.option("--retry-delay", metavar="SPAN", help="The wait before the first retry; it doubles each time."),
        *failing.OPTIONS,
    ),
    "limits": (
        click.option(
            "--limit",
            multiple=True,
            metavar="KEY=N[,RATE]",
            help="How many executions of each key may run at once, or start in a time, such as"
            " '${params.customer}=2,10/1m'; repeatable.",
        ),
    ),
    "dependencies": (
        click.option(
            "--depends-on",
            multiple=True,
            metavar="JOB[:CONDITION]",
            help="A job on which this job depends, by name or id; the condition is success, failure or finished;"
            " repeatable.",
        ),
    ),
    "with": (
        click.option(
            "--with", "values", multiple=True, metavar="NAME=VALUE", help="A parameter of the template; repeatable."
        ),
    ),
}


def _options(row: Row) -> tuple[Any, ...]:
    return _OWN[row.name] if row.name in _OWN else (option_of(row, JOB),) if row.flag else ()


_DERIVED = tuple(row for row in JOB.rows if row.flag and row.name not in _OWN)
_OPTIONS = (
    click.option("-f", "--file", metavar="FILE", help="Read the definition from a YAML or JSON file; - is stdin."),
    *(option for row in JOB.rows for option in _options(row)),
)


unset = unset_option(JOB.rows)


definition_options = with_options(_OPTIONS)


def errors_in_flags(options: dict[str, Any]) -> AbstractContextManager[None]:
    """Name options instead of fields in errors, unless the definition comes from a file."""
    return nullcontext() if options["file"] else errors_as_options(_OPTIONS)


def read_definition(name: str | None, options: dict[str, Any]) -> dict[str, Any]:
    """Return the definition in the options, merged over that of a file."""
    base: dict[str, Any] = {}
    if options["file"]:
        documents = read_documents(options["file"])
        if len(documents) > 1:
            raise BadInput(f"{options['file']} defines {len(documents)} jobs.", "Use `horae apply -f` for several.")
        base = documents[0]
    fields = {"name": name, **_work(options), **_when(options), **_how(options)}
    given = {field: value for field, value in fields.items() if value not in _EMPTY}
    return {**base, **with_resets({**given, **values_of(_DERIVED, options)}, options)}


def _work(options: dict[str, Any]) -> dict[str, Any]:
    given = [kind for kind in ("command", "shell", "python", "http") if options[kind]]
    if len(given) > 1:
        raise BadInput(f"--{given[0]} and --{given[1]} exclude each other.", "Remove one of them.")
    request = {field: options[field] for field in ("method", "redirects") if options[field] is not None}
    if request and not options["http"]:
        flag = f"--{next(iter(request))}"
        raise BadInput(f"{flag} needs --http.", f"Give --http URL, or no {flag}.")
    limits = _limits(options["process_limit"])
    if options["user"] and not (options["command"] or options["shell"]):
        raise BadInput("--user needs a command.", "Give --command COMMAND, or no --user.")
    if limits and (options["http"] or not given):
        raise BadInput("--process-limit needs a command or a function.", "Give --command COMMAND or --python FUNCTION.")
    if options["http"]:
        return {"http": {"url": options["http"], **request}}
    if options["python"]:
        return {"python": {"function": options["python"], "limits": limits} if limits else options["python"]}
    more = {"limits": limits, "user": options["user"]}
    options_given = {field: value for field, value in more.items() if value}
    if options["shell"]:
        return {"command": {"shell": options["shell"], **options_given}}
    return {"command": {"argv": options["command"], **options_given} if options_given else options["command"]}


def _limits(given: tuple[str, ...]) -> dict[str, Any]:
    return {name: int(value) if value.isdecimal() else value for name, value in pairs(given, "--process-limit").items()}


def _when(options: dict[str, Any]) -> dict[str, Any]:
    """Return the schedule that `--schedule`, `--every` and related options give."""
    schedule = values_of(TIMES.rows, {**options, "cron": options["schedule"]})
    kinds = [name for name in schedule if name in KINDS]
    if len(kinds) > 1:
        every = [flag_of(f"schedule.{row.name}") for row in TIMES.rows if row.name in KINDS]
        raise BadInput(
            f"Only one of {', '.join(every[:-1])} and {every[-1]} may be given.", "Remove the other options."
        )
    for name in schedule:
        leads = [kind.field for kind in KINDS.values() if name in kind.table.names]
        if not any(lead in kinds for lead in leads):
            flag, lead = flag_of(f"schedule.{name}"), flag_of(f"schedule.{leads[0]}")
            raise BadInput(f"{flag} needs {lead}.", f"Give {lead}, or no {flag}.")
    return {"schedule": schedule["cron"] if list(schedule) == ["cron"] else schedule}


def _how(options: dict[str, Any]) -> dict[str, Any]:
    return {
        **failing.read_failure_options(options),
        "limits": [_limit(one) for one in options["limit"]],
        "dependencies": [_dependency(one) for one in options["depends_on"]],
        "with": params(options["values"]),
    }


def _limit(text: str) -> dict[str, Any]:
    key, equals, said = text.rpartition("=")
    parts = [part.strip() for part in said.split(",") if part.strip()]
    if not equals or not key or not 1 <= len(parts) <= 2:
        raise BadInput(f"{text!r} does not give a key and its limit.", _LIMITED)
    limit: dict[str, Any] = {"key": key}
    for part in parts:
        kind = "rate" if "/" in part else "concurrency"
        if kind == "concurrency" and not part.isdecimal():
            raise BadInput(f"{part!r} is neither a number nor a rate.", _LIMITED)
        if kind in limit:
            raise BadInput(f"{text!r} gives two values for the {kind}.", _LIMITED)
        limit[kind] = part if kind == "rate" else int(part)
    return limit


def _dependency(text: str) -> str | dict[str, str]:
    job, colon, condition = text.partition(":")
    return {"job": job, "condition": condition} if colon else job


def editable(document: dict[str, Any]) -> dict[str, Any]:
    """Return the part of a job's document that its owner wrote."""
    if document.get("template"):
        fields = {"name": document["name"], "template": document["template"], "with": document["with"]}
        return {**fields, **document["overrides"]}
    return {field: document[field] for field in JOB.names if document.get(field) not in (*_EMPTY, JOB.defaults[field])}


def hidden_defaults(document: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that `editable` leaves out and for which a namespace may set another default."""
    kept = {field: document[field] for field in DEFAULTS if document.get(field) not in _EMPTY}
    return {} if document.get("template") else {field: kept[field] for field in kept.keys() - editable(document)}
