"""The options that define a job, for `jobs create` and `jobs edit`."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import click

from horae.cli.admission.limits import FIELDS as LIMITS
from horae.cli.admission.limits import LIMIT_OPTIONS, limits
from horae.cli.definitions.placement import FIELDS as PLACEMENT
from horae.cli.definitions.placement import PLACEMENT_OPTIONS, placement
from horae.cli.executions import failing
from horae.cli.executions.meetings import FIELDS as MEETINGS
from horae.cli.executions.meetings import MEETING_OPTIONS, meetings
from horae.cli.flags import in_flags
from horae.cli.times import TIME
from horae.cli.values import pairs, params, read_documents, read_json, schedule
from horae.errors import BadInput

# What of a job's document is its definition; the rest is what Horae says about it.
FIELDS = (
    *("name", "description", "schedule", "triggers", "command", "python", "http", "workflow", "params", "schema"),
    *(
        "retries",
        "retry",
        "timeout",
        "timeouts",
        "pauseAfter",
        "within",
        "grace",
        "priority",
        "queue",
        *PLACEMENT,
        "dependencies",
        "dependencyTimeout",
        "onDependencyTimeout",
    ),
    *(
        "tags",
        "env",
        "secrets",
        "delivery",
        "keyFor",
        "interruptible",
        "preemptible",
        "preempts",
        "durable",
        "sensitive",
    ),
    *(*MEETINGS, "circuit", *LIMITS, "template", "with"),
)
_EMPTY: tuple[Any, ...] = (None, "", [], {})

_OPTIONS = (
    click.option("-f", "--file", metavar="FILE", help="Read the definition from a YAML or JSON file; - is stdin."),
    click.option("--command", metavar="COMMAND", help="Run a program; split like a shell does, run without one."),
    click.option("--shell", metavar="LINE", help="Run a line with a shell."),
    click.option("--user", metavar="USER", help="Whom the command runs as, on a worker that is root."),
    click.option(
        "--process-limit",
        multiple=True,
        metavar="NAME=VALUE",
        help="What it may use: memory=512MiB, cpu=30s, processes=64, files, output or fileSize; repeatable.",
    ),
    click.option("--python", metavar="FUNCTION", help="Call a function that a worker's app registers."),
    click.option("--http", metavar="URL", help="Send an HTTP request."),
    click.option("--method", metavar="METHOD", help="The request's method; POST otherwise."),
    click.option("--redirects", type=click.IntRange(0, 10), metavar="N", help="How many redirects it follows."),
    click.option(
        "--schedule", "--cron", "schedule", metavar="CRON", help="When: five cron fields, as '0 9 * * MON-FRI'."
    ),
    click.option("--tz", metavar="ZONE", help="The schedule's time zone, as Europe/Paris; UTC otherwise."),
    click.option("--every", metavar="SPAN", help="When: again and again after so long, as 5m."),
    click.option("--at", type=TIME, help="When: once, as 2026-11-15T08:00:00Z."),
    click.option(
        "--param", multiple=True, metavar="NAME=VALUE", help="A default parameter; JSON is read as JSON; repeatable."
    ),
    click.option("--retries", type=click.IntRange(0), metavar="N", help="How many further tries after a failure."),
    click.option("--retry-delay", metavar="SPAN", help="The wait before the first retry; it doubles each time."),
    click.option("--timeout", metavar="SPAN", help="How long one try may take, as 1h."),
    click.option("--within", metavar="SPAN", help="The deadline of its executions: so long after they are due, as 2h."),
    *failing.OPTIONS,
    click.option(
        "--priority", type=click.IntRange(0, 9), metavar="N", help="From 0 (least urgent) to 9 (most); 4 otherwise."
    ),
    click.option("--queue", metavar="QUEUE", help="The queue it waits in; 'default' otherwise."),
    *PLACEMENT_OPTIONS,
    click.option(
        "--depends-on",
        multiple=True,
        metavar="JOB[:CONDITION]",
        help="A job it depends on, by name or id; on its success, failure or finished; repeatable.",
    ),
    click.option("--dependency-timeout", metavar="SPAN", help="How long an execution waits for these; 1d otherwise."),
    click.option(
        "--on-dependency-timeout",
        type=click.Choice(["fail", "skip", "run"]),
        help="What becomes of one that waited so long; fail otherwise.",
    ),
    click.option("--tag", multiple=True, metavar="NAME=VALUE", help="A tag; repeatable."),
    click.option(
        "--env", multiple=True, metavar="NAME=VALUE", help="A variable of the command's environment; repeatable."
    ),
    click.option("--delivery", type=click.Choice(["at-least-once", "at-most-once"]), help="What a lost worker means."),
    click.option("--interruptible/--not-interruptible", default=None, help="Whether spot workers may run it."),
    click.option("--preemptible/--not-preemptible", default=None, help="Whether more urgent work may take its place."),
    click.option("--preempts/--preempts-nothing", default=None, help="Whether it takes the place of preemptible work."),
    click.option(
        "--sensitive/--not-sensitive", default=None, help="Whether its params and results are sealed in the store."
    ),
    click.option("--durable/--not-durable", default=None, help="Whether its function may wait without a worker."),
    *LIMIT_OPTIONS,
    *MEETING_OPTIONS,
    click.option("--template", metavar="NAME", help="The template that it is made from."),
    click.option("--with", "values", multiple=True, metavar="NAME=VALUE", help="A parameter of it; repeatable."),
    click.option(
        "--circuit",
        metavar="PERCENT|JSON",
        help="Stop for a while from this share of failures on, as 50% or an object.",
    ),
    click.option("--description", metavar="TEXT", help="What it is for."),
)


def definition_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def speaking_flags(options: dict[str, Any]) -> AbstractContextManager[None]:
    """Refusals speak of options, unless a file says what is refused."""
    return nullcontext() if options["file"] else in_flags(_OPTIONS)


def read_definition(name: str | None, options: dict[str, Any]) -> dict[str, Any]:
    """The definition that options say, over that of a file."""
    base: dict[str, Any] = {}
    if options["file"]:
        documents = read_documents(options["file"])
        if len(documents) > 1:
            raise BadInput(f"{options['file']} defines {len(documents)} jobs.", "Use `horae apply -f` for several.")
        base = documents[0]
    said = {"name": name, **_work(options), **_when(options), **_how(options)}
    return {**base, **{field: value for field, value in said.items() if value not in _EMPTY}}


def _work(options: dict[str, Any]) -> dict[str, Any]:
    given = [kind for kind in ("command", "shell", "python", "http") if options[kind]]
    if len(given) > 1:
        raise BadInput(f"--{given[0]} and --{given[1]} cannot both be what runs.", "Leave one out.")
    request = {field: options[field] for field in ("method", "redirects") if options[field]}
    if request and not options["http"]:
        flag = f"--{next(iter(request))}"
        raise BadInput(f"{flag} belongs to --http, which is not there.", f"Give --http URL, or no {flag}.")
    if options["http"]:
        return {"http": {"url": options["http"], **request}}
    limits = _limits(options["process_limit"])
    if options["python"]:
        return {"python": {"function": options["python"], "limits": limits} if limits else options["python"]}
    if (limits or options["user"]) and not given:
        raise BadInput("--user and --process-limit belong to what runs, which is not there.", "Give --command COMMAND.")
    more = {"limits": limits, "user": options["user"]}
    said = {field: value for field, value in more.items() if value}
    if options["shell"]:
        return {"command": {"shell": options["shell"], **said}}
    return {"command": {"argv": options["command"], **said} if said else options["command"]}


def _limits(given: tuple[str, ...]) -> dict[str, Any]:
    return {name: int(value) if value.isdecimal() else value for name, value in pairs(given, "--process-limit").items()}


def _when(options: dict[str, Any]) -> dict[str, Any]:
    return {"schedule": schedule(options["schedule"], options["every"], options["at"], options["tz"])}


def _how(options: dict[str, Any]) -> dict[str, Any]:
    same = ("retries", "timeout", "within", "priority", "queue", "delivery", "description", "sensitive")
    return {
        **{field: options[field] for field in (*same, "interruptible", "preemptible", "preempts", "durable")},
        "circuit": _circuit(options["circuit"]),
        "template": options["template"],
        "with": params(options["values"]),
        "params": params(options["param"]),
        **failing.read_failing(options),
        **placement(options),
        **limits(options),
        **meetings(options),
        "dependencies": [_dependency(one) for one in options["depends_on"]],
        "dependencyTimeout": options["dependency_timeout"],
        "onDependencyTimeout": options["on_dependency_timeout"],
        "tags": pairs(options["tag"], "--tag"),
        "env": pairs(options["env"], "--env"),
    }


def _circuit(text: str | None) -> Any:
    return read_json(text, "--circuit") if text is not None and text.lstrip().startswith(("{", "@")) else text


def _dependency(text: str) -> str | dict[str, str]:
    job, colon, condition = text.partition(":")
    return {"job": job, "condition": condition} if colon else job


def editable(document: dict[str, Any]) -> dict[str, Any]:
    """The part of a job's document that its owner wrote."""
    if document.get("template"):
        said = {"name": document["name"], "template": document["template"], "with": document["with"]}
        return {**said, **document["own"]}
    return {field: document[field] for field in FIELDS if document.get(field) not in _EMPTY}
