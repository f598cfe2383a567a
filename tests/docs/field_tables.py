"""Tables of fields in docs/, made of the tables in the code."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from horae.model.admission.quota import QUOTA
from horae.model.definitions.job import JOB
from horae.model.fields.table import Row

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


def fields_of_jobs() -> str:
    """Every field of a job: its meaning, an example and its default."""
    return written(JOB.rows, JOB.usual, PAGES)


def fields_of_quotas() -> str:
    """Every bound of a quota."""
    return written(QUOTA.rows, QUOTA.usual)


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
    return [f"`{row.name}`", f"{row.field.help}{more}{since}", _shown(row.field.example), _shown(usual)]


def _shown(value: Any) -> str:
    return "" if value is None or value in ("", [], {}) else f"`{json.dumps(value)}`"
