"""Tables of fields in docs/, generated from the tables in the code."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from horae.features.alerts.model.channel import CHANNEL
from horae.features.alerts.model.rule import RULE
from horae.features.backfills.model.request import BACKFILL
from horae.features.rollouts.model.read import ROLLOUT
from horae.features.templates.model.values import FIELDS as TEMPLATE
from horae.model.admission.policy import POLICIES
from horae.model.admission.queue import QUEUE
from horae.model.admission.quota import QUOTA
from horae.model.definitions.job import JOB
from horae.model.fields.kinds import Choice
from horae.model.fields.table import Object, Row
from horae.model.fields.variants import Variants
from horae.model.fleet.submit import SUBMISSION
from horae.model.tenancy.namespace import DEFAULTS, NAMESPACE
from horae.model.triggers.calendars.read import FIELDS as OF_CALENDARS
from horae.model.triggers.decisions.named_trigger import NAMED_TRIGGER
from horae.model.triggers.decisions.rules import RULES
from horae.model.triggers.decisions.schedule import FIELDS as OF_TRIGGERS
from horae.model.workflows.reading.steps import STEP
from horae.model.workflows.reading.workflow import WORKFLOW

# The page with more details about a job's field.
PAGES = {
    **dict.fromkeys(("schedule", "triggers"), "triggers.md"),
    **dict.fromkeys(("env", "secrets"), "secrets.md"),
    **dict.fromkeys(("needs", "prefers", "slots", "resources", "affinity", "spread"), "placement.md"),
    **dict.fromkeys(("preemptible", "preempts"), "fleet.md#preemption"),
    **dict.fromkeys(("dependencies", "dependencyTimeout", "onDependencyTimeout"), "dependencies.md"),
    **dict.fromkeys(("concurrency", "rate", "burst", "limits", "sequence"), "limits.md"),
    **{name: f"deduplication.md#{name}" for name in ("unique", "debounce", "batch", "cache")},
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
PAGES_OF_WORKFLOWS = {
    **dict.fromkeys(("onSuccess", "onFailure", "finally"), "#handlers"),
    **dict.fromkeys(("while", "until", "every", "maxRuns"), "#loops"),
    "workflow": "#a-workflow",
    "onError": "#failures",
    "join": "#joins",
    "foreach": "#foreach",
    "undo": "#compensation",
    "switch": "#conditions-and-branches",
    "event": "events.md",
    "callback": "#waiting-for-others",
}
PAGES_OF_SUBMISSIONS = {
    **dict.fromkeys(("deadline", "within"), "queues.md#policies"),
    **dict.fromkeys(("interval", "propagate", "waitForDependencies"), "dependencies.md"),
}


def fields_of_submissions() -> str:
    """Return the fields of a submission; params are bytes of JSON in the table."""
    usual = {name: value for name, value in SUBMISSION.defaults.items() if name != "params"}
    return written(SUBMISSION.rows, usual, PAGES_OF_SUBMISSIONS)


def fields_of_workflows() -> str:
    """Return the fields of a workflow."""
    return written(WORKFLOW.rows, WORKFLOW.defaults, PAGES_OF_WORKFLOWS)


def kinds_of_steps() -> str:
    """Return the fields that select the kind of a step."""
    return written((row for row in STEP.rows if row.field.does), {}, {**PAGES, **PAGES_OF_WORKFLOWS})


def fields_of_steps() -> str:
    """Return the other fields of a step, beside the fields of a job."""
    rows = [row for row in STEP.rows if not row.field.does and row.attribute != "own"]
    return written(rows, STEP.defaults, PAGES_OF_WORKFLOWS)


def fields_of_jobs() -> str:
    """Return every field of a job: its meaning, an example and its default."""
    return written(JOB.rows, JOB.defaults, PAGES)


def fields_of_quotas() -> str:
    """Return every bound of a quota."""
    return written(QUOTA.rows, QUOTA.defaults)


def fields_of_namespaces() -> str:
    """Return every field of a namespace."""
    return written(NAMESPACE.rows, NAMESPACE.defaults, {"archive": "history.md", "queuePolicy": "queues.md#policies"})


def defaults_of_jobs() -> str:
    """Return every field of a job for which a namespace may have a default."""
    return f"{', '.join(f'`{name}`' for name in DEFAULTS)}."


def kinds_of_triggers() -> str:
    """Return the fields that select a trigger's kind, each followed by the fields of this kind only."""
    beside = (*RULES.names, *NAMED_TRIGGER.names)
    return written((row for row in OF_TRIGGERS.rows if row.name not in beside), OF_TRIGGERS.defaults, PAGES_OF_TRIGGERS)


def rules_of_triggers() -> str:
    """Return the fields that all kinds of triggers have."""
    usual = {name: value for name, value in OF_TRIGGERS.defaults.items() if name != "name"}  # which is that of its kind
    return written((*RULES.rows, *NAMED_TRIGGER.rows), usual, PAGES_OF_TRIGGERS)


def fields_of_backfills() -> str:
    """Return the fields of a request for a backfill."""
    return written(BACKFILL.rows, BACKFILL.defaults)


def fields_of_rollouts() -> str:
    """Return the fields of a request for a rollout."""
    return written(ROLLOUT.rows, ROLLOUT.defaults)


def fields_of_templates() -> str:
    """Return the fields of a template."""
    return written(TEMPLATE.rows, TEMPLATE.defaults)


def fields_of_alert_rules() -> str:
    """Return the fields that rules of all kinds have."""
    return written(RULE.shared, RULE.defaults)


def kinds_of_alert_rules() -> str:
    """Return every kind of rule: its condition, and its own fields with their defaults."""
    return kinds(RULE, "an alert is open while")


def kinds_of_channels() -> str:
    """Return every kind of channel and its own fields."""
    return kinds(CHANNEL, "what it does")


def kinds(noun: Variants, about: str) -> str:
    """Return each kind: its purpose, and the fields that only this kind has."""
    lines = [f"| kind | {about} | its fields |", "|---|---|---|"]
    for kind, table in noun.tables.items():
        fields = [_member(row, table.defaults.get(row.name)) for row in noun.own(kind)]
        lines.append(f"| `{kind}` | {noun.about(kind)} | {' '.join(fields)} |")
    return "\n".join(lines)


def _member(row: Row, usual: Any) -> str:
    if row.attribute == "subjects":
        return f"`{row.name}`."
    otherwise = f" ({_shown(usual)})" if _shown(usual) else ""
    return f"`{row.name}`{otherwise}: {row.field.help[:1].lower()}{row.field.help[1:]}"


def fields_of_queues() -> str:
    """Return every field of a queue."""
    return written(QUEUE.rows, QUEUE.defaults, {"policy": "#policies", "preempts": "fleet.md#preemption"})


def kinds_of_policies() -> str:
    """Return every kind of policy and its fields."""
    return kinds(POLICIES, "who is next")


def fields_of_calendars() -> str:
    """Return every field of a calendar, and the fields beside its kind."""
    return written(OF_CALENDARS.rows, OF_CALENDARS.defaults)


def written(rows: Iterable[Row], usual: Mapping[str, Any], pages: Mapping[str, str] = {}) -> str:
    """Return a row per field: its meaning, an example and its default; empty columns are omitted."""
    head = ("field", "meaning", "example", "default")
    lines = [_cells(row, usual.get(row.name), pages.get(row.name)) for row in rows]
    kept = [i for i in range(len(head)) if any(cells[i] for cells in lines)]
    table = [head, ["---"] * len(head), *lines]
    drawn = [" | ".join(cells[i] for i in kept) for cells in table]
    return "\n".join(f"|{line.replace(' ', '')}|" if i == 1 else f"| {line} |" for i, line in enumerate(drawn))


def _cells(row: Row, usual: Any, page: str | None) -> list[str]:
    more = f" See [{page.partition('.')[0].lstrip('#')}]({page})." if page else ""
    since = f" Since {row.field.since}." if row.field.since else ""
    words = f" One of {', '.join(f'`{word}`' for word in row.kind.words)}." if isinstance(row.kind, Choice) else ""
    members = f" As `{{{', '.join(map(_part, row.kind.table.rows))}}}`." if isinstance(row.kind, Object) else ""
    return [f"`{row.name}`", f"{row.field.help}{words}{members}{more}{since}", _shown(row.field.example), _shown(usual)]


def _part(row: Row) -> str:
    """Return a member of an object: its name, with its choices."""
    return f"{row.name}: {' or '.join(row.kind.words)}" if isinstance(row.kind, Choice) else row.name


def _shown(value: Any) -> str:
    return "" if value is None or value in ("", [], {}) else f"`{json.dumps(value)}`"
