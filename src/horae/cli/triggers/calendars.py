"""`horae calendars`: named opening times."""

from typing import Any

import click

from horae.cli.fields import option_of, values_of, with_options
from horae.cli.lazy import HoraeGroup
from horae.cli.output import Column
from horae.cli.remote import Api, remote
from horae.cli.request import lists, message, one, request
from horae.cli.terminal import echo
from horae.cli.values import read_one
from horae.errors import BadInput
from horae.model.triggers.calendars.read import FIELDS, KINDS

# Fields with special options, which may be repeated where the field takes one value, or have another form.
_OWN: dict[str, tuple[Any, ...]] = {
    "calendar": (
        click.option("--calendar", multiple=True, metavar="NAME", help="Open when this calendar is open; repeatable."),
    ),
    "except": (
        click.option("--except-date", multiple=True, metavar="DATE", help="Closed on this day, written as for --date."),
        click.option("--except", "except_", multiple=True, metavar="NAME", help="Closed when this calendar is open."),
    ),
}
_ROWS = tuple(row for row in FIELDS.rows if row.flag and row.name not in _OWN)
_OPTIONS = (
    click.option("-f", "--file", metavar="FILE", help="Read the definition from a YAML or JSON file; - is stdin."),
    *(
        option
        for row in FIELDS.rows
        for option in (_OWN.get(row.name) or ((option_of(row, FIELDS),) if row.flag else ()))
    ),
)


@click.group(cls=HoraeGroup, examples=("horae calendars list", "horae calendars preview work-hours"))
def calendars() -> None:
    """Write, list and preview calendars."""


COLUMNS: list[Column] = [
    ("NAME", "name"),
    ("VERSION", "version"),
    ("OPEN", "open"),
    ("CHANGES", lambda one: one.get("closesAt") or one.get("opensAt")),
    ("TIMES", "text"),
]
request(
    calendars, "calendars.list",
    lists(COLUMNS, "There are no calendars. Write one with: horae calendars set work --hours 'MON-FRI 09:00-17:00'"),
    examples=("horae calendars list", "horae calendars list -o json"),
)  # fmt: skip


request(
    calendars, "calendars.get", one, name="show",
    examples=("horae calendars show work", "horae calendars show work --at 2026-01-01T00:00:00Z"),
)  # fmt: skip


@calendars.command(
    "set",
    examples=(
        "horae calendars set french-work --country FR --tz Europe/Paris --except-date 2026-12-24",
        "horae calendars set office --hours 'MON-FRI 09:00-17:00' --hours 'SAT 10:00-14:00' --tz Europe/Paris",
        "horae calendars set office-days --calendar french-work --calendar office",
        "horae calendars set trading --exchange XNYS --tz America/New_York",
        "horae calendars set maintenance -f maintenance.yaml",
    ),
)
@click.argument("name")
@with_options(_OPTIONS)
@click.option(
    "--if-version", type=click.IntRange(1), metavar="N", help="Only if the calendar is still at this version."
)
@remote
async def set_(api: Api, name: str, if_version: int | None, **options: Any) -> None:
    """Create or change a calendar, by options or from a file.

    With several kinds of times, such as --country and --hours, the calendar is open only while all of them are open.
    """
    document = _document(options)
    before = None if if_version is None else f'"{if_version}"'
    calendar = await api.client.calendars.put(name, document, if_match=before)
    if not api.out.is_for_people:
        return api.out.document(calendar.raw)
    api.out.say(f"Calendar {calendar.name} is at version {calendar.version}: {calendar.text}.")
    for note in calendar.notes:
        echo(note, err=True)
    return None


def _document(options: dict[str, Any]) -> dict[str, Any]:
    """Return the definition in the options or in a file."""
    fields = values_of(_ROWS, options)
    kinds: list[dict[str, Any]] = [{"calendar": name} for name in options["calendar"]]
    given_kinds = [kind for kind in KINDS.values() if kind.field in fields]
    kinds += [{name: fields.pop(name) for name in kind.names if name in fields} for kind in given_kinds]
    if options["file"] and kinds:
        raise BadInput("A file and options cannot both give the times.", "Use only the file or only the options.")
    if not options["file"] and not kinds:
        flags = ", ".join(f"--{FIELDS[kind].flag}" for kind in KINDS if FIELDS[kind].flag)
        raise click.UsageError(f"Give the opening times: {flags} or -f FILE.")
    document = kinds[0] if len(kinds) == 1 else {"all": kinds}
    if options["file"]:
        document = read_one(options["file"], "calendar", "such as {hours: MON-FRI 09:00-17:00}")
    dates = [{"dates": list(options["except_date"])}] if options["except_date"] else []
    without = [*dates, *options["except_"]]
    lists = {"except": without} if without else {}
    return {**document, **{name: [*_as_list(document.get(name)), *more] for name, more in lists.items()}, **fields}


def _as_list(value: Any) -> list[Any]:
    """Return the exceptions of a calendar's definition, which may be one or a list."""
    return value if isinstance(value, list) else [] if value is None else [value]


request(
    calendars,
    "calendars.delete",
    message("Deleted calendar {name}.", deleted=True),
    examples=("horae calendars delete office",),
)


request(
    calendars, "calendars.openings",
    lists([("OPENS", "from"), ("CLOSES", "to")], "The calendar does not open in that time."),
    name="preview", called={"since": "--from", "until": "--to"},
    examples=("horae calendars preview office", "horae calendars preview office --from 2026-12-01T00:00:00Z --limit 5"),
)  # fmt: skip
