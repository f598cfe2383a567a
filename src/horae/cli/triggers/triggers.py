"""`horae triggers`: what fires jobs, one by one, and when it will."""

from collections.abc import Callable
from typing import Any

import click

from horae.cli.lazy import Group
from horae.cli.output import Age, Column
from horae.cli.remote import Api, remote
from horae.cli.request import Given, lists, one, request, says
from horae.cli.times import TIME
from horae.cli.values import params
from horae.client.kernel.triggers import Trigger
from horae.errors import BadInput

_WHEN = (
    click.option("--cron", metavar="CRON", help="Five cron fields, as '0 9 * * MON-FRI'."),
    click.option("--tz", metavar="ZONE", help="The time zone, as Europe/Paris; UTC otherwise."),
    click.option("--dialect", type=click.Choice(["unix", "quartz"]), help="How to read the fields; unix otherwise."),
    click.option("--dst-gap", type=click.Choice(["shift", "skip"]), help="What becomes of a time that is jumped over."),
    click.option(
        "--dst-overlap", type=click.Choice(["first", "second", "both"]), help="Which of a time that comes twice."
    ),
    click.option("--every", metavar="SPAN", help="Again and again after so long, as 5m."),
    click.option("--anchor", type=TIME, help="An instant from which --every counts."),
    click.option("--at", type=TIME, help="Once, as 2026-11-15T08:00:00Z."),
    click.option("--start-at", type=TIME, help="Nothing fires before this."),
    click.option("--end-at", type=TIME, help="Nothing fires from this on."),
    click.option("--calendar", metavar="NAME", help="Only when this calendar is open."),
    click.option(
        "--outside",
        type=click.Choice(["skip", "postpone", "advance"]),
        help="What becomes of a fire while the calendar is closed; skip otherwise.",
    ),
)
_HAPPENING = (
    click.option("--event", metavar="EVENT", help="When an event of this name comes."),
    click.option(
        "--webhook",
        type=click.Choice(["signed", "unsigned"]),
        help="When a URL of its own is called; `horae events webhook` makes it.",
    ),
    click.option("--watch", metavar="PLACE", help="For each new object there: /srv/inbox or s3://bucket/inbox/."),
    click.option("--interval", metavar="SPAN", help="How often --watch looks; 30s otherwise."),
    click.option(
        "--existing",
        type=click.Choice(["ignore", "fire"]),
        help="What --watch does with what is there; ignore otherwise.",
    ),
    click.option("--settle", metavar="SPAN", help="How long an object that --watch found must have been as it is."),
    click.option("--filter", metavar="CEL", help="Only when this is true, as '${event.payload.size > 10}'."),
)
_RULES = (
    click.option("--max-fires", type=click.IntRange(1), metavar="N", help="How often it fires at most."),
    click.option("--jitter", metavar="SPAN", help="Move each fire by chance, up to so much."),
    click.option("--spread", metavar="SPAN", help="Give it a fixed place in so long a window after each instant."),
    click.option("--misfire", metavar="POLICY", help="What of missed fires runs: skip, latest, all[=10], window=1h."),
    click.option(
        "--overlap", metavar="POLICY", help="While the last runs: skip, allow, queueOne, queueAll[=10], cancelOther."
    ),
    click.option("--grace", metavar="SPAN", help="A fire decided within this is late, not missed; 1m otherwise."),
    click.option("--within", metavar="SPAN", help="The deadline of its executions: so long after each fire, as 2h."),
    click.option(
        "--param", multiple=True, metavar="NAME=VALUE", help="A parameter it gives, as day='${fire.at}'; repeatable."
    ),
)
_FIELDS = {
    "tz": "timezone",
    "dst_gap": "dstGap",
    "dst_overlap": "dstOverlap",
    "start_at": "startAt",
    "end_at": "endAt",
    "max_fires": "maxFires",
}
_KINDS = ["cron", "interval", "once", "event", "webhook", "watch"]


def _options(*groups: tuple[Any, ...]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed([option for group in groups for option in group]):
            command = option(command)
        return command

    return add


@click.group(cls=Group, examples=("horae triggers list", "horae triggers preview '0 9 * * MON-FRI' --tz Europe/Paris"))
def triggers() -> None:
    """Add, list, change, pause and preview triggers of jobs."""


COLUMNS: list[Column] = [
    ("JOB", "job"),
    ("NAME", "name"),
    ("STATE", lambda one: "paused" if "paused" in (one["state"], one["jobState"]) else one["state"]),
    ("TRIGGER", "text"),
    ("NEXT", Age("nextFireAt")),
    ("FIRED", "fired"),
]
ONE = {"ref": "job"}
ITS_OWN = {**ONE, "name": "name=schedule"}
request(
    triggers, "triggers.list",
    lists(COLUMNS, "There are no triggers. Add one with: horae triggers add JOB --cron '0 9 * * *'"),
    examples=("horae triggers list", "horae triggers list --job report", "horae triggers list --state paused"),
)  # fmt: skip


request(
    triggers, "triggers.get", one, name="show", called=ITS_OWN,
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
@click.option("--name", metavar="NAME", help="Its name in the job; its kind otherwise.")
@_options(_WHEN, _HAPPENING, _RULES)
@click.option("--paused", is_flag=True, help="It fires nothing until it is resumed.")
@remote
async def add(api: Api, job: str, **options: Any) -> None:
    """Add a trigger to a job."""
    made = await api.client.triggers.add(job, _given({**options, "paused": options["paused"] or None}))
    _done(api, made.raw, f"Added {made.name} to {made.job}: {made.text}.")


@triggers.command(
    examples=(
        "horae triggers edit report nightly --cron '0 3 * * *'",
        "horae triggers edit report nightly --overlap allow",
    )
)
@click.argument("job")
@click.argument("name")
@_options(_WHEN, _HAPPENING, _RULES)
@remote
async def edit(api: Api, job: str, name: str, **options: Any) -> None:
    """Change a trigger; what is not named stays as it is."""
    given = _given(options)
    if not given:
        raise click.UsageError("Say what changes: horae triggers edit --help")
    changed = await api.client.triggers.edit(job, name, **given)
    _done(api, changed.raw, f"Changed {changed.name} of {changed.job}: {changed.text}.")


request(
    triggers, "triggers.remove", says("Removed {name} from {job}."), called=ONE,
    examples=("horae triggers remove report nightly",),
)  # fmt: skip


request(
    triggers, "triggers.pause", says("Paused {name} of {job}."), called=ITS_OWN,
    examples=("horae triggers pause report nightly",),
)  # fmt: skip


def _resumed(trigger: Trigger, given: Given) -> str:
    state = " Its job is paused, so it waits for that." if trigger.raw.get("jobState") == "paused" else ""
    return f"Resumed {trigger.name} of {trigger.job}.{state}"


request(triggers, "triggers.resume", says(_resumed), called=ITS_OWN, examples=("horae triggers resume report nightly",))


@triggers.command(
    examples=(
        "horae triggers preview '0 9 * * MON-FRI' --tz Europe/Paris --from 2026-03-27T00:00:00Z --count 10 -o json",
        "horae triggers preview --every 90m --count 5",
        "horae triggers preview '0 0 9 ? * 2#1' --dialect quartz",
        "horae triggers preview --job report --trigger nightly",
    )
)
@click.argument("expression", required=False)
@_options(_WHEN)
@click.option("--job", metavar="JOB", help="Instead: a trigger of this job.")
@click.option("--trigger", metavar="NAME", help="Its name; that of its schedule otherwise.")
@click.option("--from", "since", type=TIME, help="Fires after this; now otherwise.")
@click.option("--count", type=click.IntRange(1, 1000), default=10, help="How many.  [default: 10]")
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
    """Show when a trigger fires. Without --job and --calendar no server is asked.

    -o json prints an array of instants in UTC and nothing else.
    """
    given = _given({**options, "cron": expression or options["cron"]})
    if trigger is not None and job is None:
        raise BadInput("--trigger is one of a job, which is not there.", "Give --job JOB too.")
    if job is not None and given:
        raise BadInput(f"--job shows one that exists, so {next(iter(given))} has no place.", "Leave one of them out.")
    if job is None and not given:
        raise click.UsageError("Say what fires: horae triggers preview '0 9 * * MON-FRI'")
    if job is not None or "calendar" in given:
        answer = (await api.client.triggers.preview(given, job=job, name=trigger, since=since, count=count)).raw
    else:
        answer = _here(given, since, count, api.env.now())
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


def _here(given: dict[str, Any], since: str | None, count: int, now: int) -> dict[str, Any]:
    """A preview is pure: it needs no server."""
    import msgspec

    from horae.model.base.instant import parse_instant
    from horae.model.definitions.reading.preview import show_preview

    after = now if since is None else parse_instant(since, field="--from")
    return msgspec.to_builtins(show_preview(given, after, count))  # type: ignore[no-any-return]


def _given(options: dict[str, Any]) -> dict[str, Any]:
    """Options as the API spells them."""
    said = {name: value for name, value in options.items() if value is not None and name != "param"}
    given = {_FIELDS.get(name, name): value for name, value in said.items()}
    for rule in ("misfire", "overlap"):
        if rule in given:
            given[rule] = _policy(given[rule])
    if "webhook" in given:
        given["webhook"] = True if given["webhook"] == "signed" else {"verify": "none"}
    if options.get("param"):
        given["params"] = params(options["param"])
    return given


def _policy(text: str) -> str | dict[str, Any]:
    """`all=10` as {"all": 10}."""
    name, equals, amount = text.partition("=")
    if not equals:
        return text
    return {name: int(amount) if amount.isdigit() else amount}


def _done(api: Api, document: dict[str, Any], sentence: str) -> None:
    if api.out.is_for_people:
        api.out.say(sentence)
    else:
        api.out.document(document)
