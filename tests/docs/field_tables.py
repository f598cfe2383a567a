"""Tables of fields in docs/, made of the tables in the code."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from horae.model.admission.quota import QUOTA
from horae.model.definitions.job import JOB
from horae.model.fields.kinds import Choice
from horae.model.fields.table import Row
from horae.model.triggers.decisions.rules import RULES
from horae.model.triggers.decisions.schedule import FIELDS as OF_TRIGGERS
from horae.model.triggers.decisions.when import WHEN

# Where a page says more of a job's field.
PAGES = {
    **dict.fromkeys(("schedule", "triggers"), "triggers.md"),
    **dict.fromkeys(("env", "secrets"), "secrets.md"),
    **dict.fromkeys(("needs", "prefers", "slots", "resources", "affinity", "spread"), "placement.md"),
    **dict.fromkeys(("preemptible", "preempts"), "fleet.md#preemption"),
    **dict.fromkeys(("dependencies", "dependencyTimeout", "onDependencyTimeout"), "dependencies.md"),
    **dict.fromkeys(("concurrency", "rate", "burst", "limits", "sequence"), "limits.md"),
    **{name: f"meetings.md#{name}" for name in ("unique", "debounce", "batch", "cache")},
    **dict.fromkeys(("template", "with"), "templates.md"),
    "command": "commands.md",
    "workflow": "workflows.md",
    "schema": "schemas.md",
    "retry": "failures.md",
    "timeouts": "failures.md#timeouts",
    "pauseAfter": "failures.md#jobs-that-fail-again-and-again",
    "within": "queues.md#policies",
    "interruptible": "fleet.md#spot-workers",
    "sensitive": "sensitive.md",
    "durable": "durable.md",
    "circuit": "circuits.md",
}
PAGES_OF_TRIGGERS = {
    **dict.fromkeys(("event", "filter", "webhook", "watch"), "events.md"),
    **dict.fromkeys(("calendar", "calendars", "outside"), "calendars.md"),
    "cron": "cron.md",
    "within": "queues.md#policies",
}


def fields_of_jobs() -> str:
    """Every field of a job: its meaning, an example and its default."""
    return written(JOB.rows, JOB.usual, PAGES)


def fields_of_quotas() -> str:
    """Every bound of a quota."""
    return written(QUOTA.rows, QUOTA.usual)


def kinds_of_triggers() -> str:
    """The fields that tell a trigger's kind, each followed by those that only this kind has."""
    beside = (*RULES.names, *WHEN.names)
    return written((row for row in OF_TRIGGERS.rows if row.name not in beside), OF_TRIGGERS.usual, PAGES_OF_TRIGGERS)


def rules_of_triggers() -> str:
    """What stands beside a trigger's kind."""
    usual = {name: value for name, value in OF_TRIGGERS.usual.items() if name != "name"}  # which is that of its kind
    return written((*RULES.rows, *WHEN.rows), usual, PAGES_OF_TRIGGERS)


def written(rows: Iterable[Row], usual: Mapping[str, Any], pages: Mapping[str, str] = {}) -> str:
    """Write each field: its meaning, an example and its default, of which a column may be empty and is left out."""
    head = ("field", "meaning", "example", "default")
    lines = [_cells(row, usual.get(row.name), pages.get(row.name)) for row in rows]
    kept = [i for i in range(len(head)) if any(cells[i] for cells in lines)]
    table = [head, ["---"] * len(head), *lines]
    drawn = [" | ".join(cells[i] for i in kept) for cells in table]
    return "\n".join(f"|{line.replace(' ', '')}|" if i == 1 else f"| {line} |" for i, line in enumerate(drawn))


def _cells(row: Row, usual: Any, page: str | None) -> list[str]:
    more = f" See [{page.partition('.')[0]}]({page})." if page else ""
    since = f" Since {row.field.since}." if row.field.since else ""
    words = f" One of {', '.join(f'`{word}`' for word in row.kind.words)}." if isinstance(row.kind, Choice) else ""
    return [f"`{row.name}`", f"{row.field.help}{words}{more}{since}", _shown(row.field.example), _shown(usual)]


def _shown(value: Any) -> str:
    return "" if value is None or value in ("", [], {}) else f"`{json.dumps(value)}`"
