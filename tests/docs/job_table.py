"""The table of a job's fields in docs/rest.md, made of the table in the code."""

import json
from typing import Any

from horae.model.definitions.job import JOB
from horae.model.fields.table import Row

# Where a page says more.
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


def fields_of_jobs() -> str:
    """Every field of a job: its meaning, an example and its default."""
    head = ["| field | meaning | example | default |", "|---|---|---|---|"]
    return "\n".join([*head, *map(_row, JOB.rows)])


def _row(row: Row) -> str:
    page = PAGES.get(row.name)
    more = f" See [{page.partition('.')[0]}]({page})." if page else ""
    since = f" Since {row.field.since}." if row.field.since else ""
    usual = JOB.usual[row.name]
    cells = [f"`{row.name}`", f"{row.field.help}{more}{since}", _shown(row.field.example), _shown(usual)]
    return f"| {' | '.join(cells)} |"


def _shown(value: Any) -> str:
    return "" if value is None or value in ("", [], {}) else f"`{json.dumps(value)}`"
