"""`horae triggers`: the triggers of jobs and their next fires."""

from collections.abc import Callable, Iterable
from typing import Any

import click

from horae.cli.fields import changes_of, option_of, unset_option, with_options
from horae.cli.lazy import HoraeGroup
from horae.cli.output import Column, TimeField
from horae.cli.remote import Api, remote
from horae.cli.request import Given, lists, message, one, request
from horae.cli.times import TIME
from horae.client.kernel.triggers import TriggerInfo
from horae.errors import BadInput
from horae.model.fields.table import Row
from horae.model.triggers.decisions.rules import RULES
from horae.model.triggers.decisions.schedule import FIELDS, TIMES

_PREVIEW_RULES = ("startAt", "endAt", "calendar", "outside")  # rules that affect the fire times: a preview applies them
_WEBHOOK = click.option(
    "--webhook",
    type=click.Choice(["signed", "unsigned"]),
    help="Fire when the trigger's own URL is called; `horae events webhook` creates it.",
)
_CHANGING = tuple(row for row in FIELDS.rows if row.flag and row.name not in ("name", "paused"))
_ROWS = (FIELDS["name"], *_CHANGING, FIELDS["paused"])
_TIMES = (*TIMES.rows, *(RULES[name] for name in _PREVIEW_RULES))


def _options(rows: Iterable[Row]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return with_options(_WEBHOOK if row.name == "webhook" else option_of(row, FIELDS) for row in rows)


@click.group(
    cls=HoraeGroup, examples=("horae triggers list", "horae triggers preview '0 9 * * MON-FRI' --tz Europe/Paris")
)
def triggers() -> None:
    """Add, list, change, pause and preview triggers of jobs."""


COLUMNS: list[Column] = [
    ("JOB", "job"),
    ("NAME", "name"),
    ("STATE", lambda one: "paused" if "paused" in (one["state"], one["jobState"]) else one["state"]),
    ("TRIGGER", "text"),
    ("NEXT", TimeField("nextFireAt")),
    ("FIRED", "fired"),
]
JOB_ARGUMENT = {"ref": "job"}
JOB_AND_OPTIONAL_NAME = {**JOB_ARGUMENT, "name": "name=schedule"}
request(
    triggers, "triggers.list",
    lists(COLUMNS, "There are no triggers. Add one with: horae triggers add JOB --cron '0 9 * * *'"),
    examples=("horae triggers list", "horae triggers list --job report", "horae triggers list --state paused"),
)  # fmt: skip


request(
    triggers, "triggers.get", one, name="show", called=JOB_AND_OPTIONAL_NAME,
    examples=("horae triggers show report nightly", "horae triggers show report"),
)  # fmt: skip


@triggers.command(
    examples=(
        "horae triggers add report --name nightly --cron '0 2 * * *' --tz Europe/Paris --spread 1h",
        "horae triggers add report --every 5m --max-fires 10 --paused",
        "horae triggers add report --name backlog --every 1m --overlap queueAll=10 --param day='${fire.at}'",
        "horae triggers add load --event upload --filter '${event.payload.size > 10}' --param key='${event.id}'",
    )
)
@click.argument("job")
@_options(_ROWS)
@remote
async def add(api: Api, job: str, **options: Any) -> None:
    """Add a trigger to a job."""
    trigger = await api.client.triggers.add(job, _given(_ROWS, options))
    _print(api, trigger.raw, f"Added trigger {trigger.name} to job {trigger.job}: {trigger.text}.")


@triggers.command(
    examples=(
        "horae triggers edit report nightly --cron '0 3 * * *'",
        "horae triggers edit report nightly --overlap allow",
    )
)
@click.argument("job")
@click.argument("name")
@_options(_CHANGING)
@unset_option(_CHANGING)
@remote
async def edit(api: Api, job: str, name: str, **options: Any) -> None:
    """Change a trigger; fields that you do not name stay unchanged."""
    given = _given(_CHANGING, options)
    if not given:
        raise click.UsageError("Give the fields to change: horae triggers edit --help")
    changed = await api.client.triggers.edit(job, name, **FIELDS.keywords(given))
    _print(api, changed.raw, f"Changed trigger {changed.name} of job {changed.job}: {changed.text}.")


request(
    triggers, "triggers.remove", message("Removed trigger {name} from job {job}."), called=JOB_ARGUMENT,
    examples=("horae triggers remove report nightly",),
)  # fmt: skip


request(
    triggers, "triggers.pause", message("Paused trigger {name} of job {job}."), called=JOB_AND_OPTIONAL_NAME,
    examples=("horae triggers pause report nightly",),
)  # fmt: skip


def _resumed(trigger: TriggerInfo, given: Given) -> str:
    state = " Its job is paused, so it does not fire yet." if trigger.raw.get("jobState") == "paused" else ""
    return f"Resumed trigger {trigger.name} of job {trigger.job}.{state}"


request(
    triggers,
    "triggers.resume",
    message(_resumed),
    called=JOB_AND_OPTIONAL_NAME,
    examples=("horae triggers resume report nightly",),
)


@triggers.command(
    examples=(
        "horae triggers preview '0 9 * * MON-FRI' --tz Europe/Paris --from 2026-03-27T00:00:00Z --count 10 -o json",
        "horae triggers preview --every 90m --count 5",
        "horae triggers preview '0 0 9 ? * 2#1' --dialect quartz",
        "horae triggers preview --job report --trigger nightly",
    )
)
@click.argument("expression", required=False)
@_options(_TIMES)
@click.option("--job", metavar="JOB", help="Preview a trigger of this job instead.")
@click.option(
    "--trigger", metavar="NAME", help="The name of a trigger of that job; without it, the job's own schedule is shown."
)
@click.option("--from", "since", type=TIME, help="Only fires after this time; now by default.")
@click.option("--count", type=click.IntRange(1, 1000), default=10, help="The number of fires.  [default: 10]")
@remote
async def preview(
    api: Api,
    expression: str | None,
    job: str | None,
    trigger: str | None,
    since: str | None,
    count: int,
    **options: Any,
) -> None:
    """Show the next fires of a trigger. Without --job and --calendar it needs no server.

    -o json prints an array of instants in UTC and nothing else.
    """
    if expression and options["cron"]:
        raise click.UsageError("Give the cron expression once: as EXPRESSION or with --cron.")
    given = _given(_TIMES, {**options, "cron": expression or options["cron"]})
    if trigger is not None and job is None:
        raise BadInput("--trigger needs --job.", "Give --job JOB, too.")
    if job is not None and given:
        raise BadInput(
            f"--job shows an existing trigger, so {next(iter(given))} cannot be given.",
            "Remove --job or the other fields.",
        )
    if job is None and not given:
        raise click.UsageError("Give a schedule: horae triggers preview '0 9 * * MON-FRI'")
    if job is not None or "calendar" in given:
        answer = (await api.client.triggers.preview(given, job=job, name=trigger, since=since, count=count)).raw
    else:
        answer = _preview_locally(given, since, count, api.env.now())
    if not api.out.is_for_people:
        return api.out.document(answer["fires"])
    api.out.say(f"{answer['text'][:1].upper()}{answer['text'][1:]}.")
    there: list[Column] = [] if answer["timezone"] == "UTC" else [(answer["timezone"], "local")]
    columns: list[Column] = [("UTC", "at"), *there, ("", "note")]
    if answer["details"]:
        api.out.table(answer["details"], columns)
    for note in answer["notes"]:
        api.out.say(note)
    return None


def _preview_locally(given: dict[str, Any], since: str | None, count: int, now: int) -> dict[str, Any]:
    """Compute a preview without a server."""
    import msgspec

    from horae.model.base.instant import parse_instant
    from horae.model.definitions.reading.preview import show_preview

    after = now if since is None else parse_instant(since, field="--from")
    return msgspec.to_builtins(show_preview(given, after, count))  # type: ignore[no-any-return]


def _given(rows: Iterable[Row], options: dict[str, Any]) -> dict[str, Any]:
    """Return options in the API's form."""
    return {
        name: _SPELLED[name](value) if name in _SPELLED and value is not None else value
        for name, value in changes_of(rows, options).items()
    }


def _webhook(text: str) -> bool | dict[str, str]:
    return True if text == "signed" else {"verify": "none"}


def _policy(text: str) -> str | dict[str, Any]:
    """Return a policy in the API's form: `all=10` as {"all": 10}."""
    name, equals, amount = text.partition("=")
    if not equals:
        return text
    return {name: int(amount) if amount.isdecimal() else amount}


_SPELLED: dict[str, Callable[[str], Any]] = {"webhook": _webhook, "misfire": _policy, "overlap": _policy}


def _print(api: Api, document: dict[str, Any], sentence: str) -> None:
    if api.out.is_for_people:
        api.out.say(sentence)
    else:
        api.out.document(document)
