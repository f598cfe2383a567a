"""Nouns with a table of fields, and the modules that may spell these fields: the table, rules across fields, codecs."""

from typing import NamedTuple

from horae.features.alerts.model.channel import CHANNEL
from horae.features.alerts.model.rule import RULE
from horae.features.backfills.model.request import BACKFILL
from horae.features.rollouts.model.read import ROLLOUT
from horae.features.templates.model.values import FIELDS as TEMPLATE
from horae.model.admission.policy import POLICIES
from horae.model.admission.queue import QUEUE
from horae.model.admission.quota import QUOTA
from horae.model.definitions.job import JOB
from horae.model.fleet.submit import SUBMISSION
from horae.model.tenancy.namespace import NAMESPACE
from horae.model.triggers.calendars.read import FIELDS as CALENDAR
from horae.model.triggers.decisions.schedule import FIELDS as TRIGGER
from horae.model.workflows.reading.steps import STEP
from horae.model.workflows.reading.workflow import WORKFLOW


class Noun(NamedTuple):
    """A noun: its field names in the API, and the modules and packages below `horae` that may spell them."""

    name: str
    fields: tuple[str, ...]
    homes: tuple[str, ...]
    common: frozenset[str] = frozenset()  # names with another meaning in documents that the API does not describe


NOUNS = (
    Noun(
        "job",
        JOB.names,
        (
            "model.definitions",
            "model.tenancy.namespace",  # which defaults yield to which fields
            "model.workflows.reading",
            "features.templates.model.values",  # fields of a job that uses a template
            "engine.definitions.permits",
            "engine.executions.resolver",  # cases in which the key of a submission has no effect
            "client.app",  # fields that decorators spell in their own way
            "client.workflows",
            "cli.definitions",  # fields that options spell in their own way
            "cli.installation.demo",  # definitions of its own
            "testing.inline",
            "worker.processes",  # the environment of a process is also called `env`
        ),
    ),
    Noun("namespace", NAMESPACE.names, ("cli.tenancy.namespaces",)),
    Noun("quota", QUOTA.names, ("model.admission.quota", "engine.tenancy.fair_access")),
    Noun(
        "queue",
        QUEUE.names,
        ("model.admission.quota", "engine.admission.queues", "cli.admission"),
        frozenset({"default"}),  # of JSON schemas
    ),
    Noun(
        "policy",
        POLICIES.names[1:],
        ("model.admission.policy",),
    ),
    Noun(
        "trigger",
        TRIGGER.names,
        (
            "model.triggers.decisions",
            "model.definitions.reading.schedule",  # the relation of kinds, rules and names
            "cli.triggers.triggers",  # fields that options spell in their own way
            "cli.definitions.definition",  # `--schedule` means cron here
        ),
        frozenset({"watch"}),  # of the process guard of a worker
    ),
    Noun("calendar", CALENDAR.names, ("model.triggers.calendars",)),
    Noun(
        "step",
        tuple(row.name for row in STEP.rows if row.attribute != "own"),
        ("model.workflows.waits", "model.workflows.repeats", "model.workflows.decisions", "model.workflows.reading"),
    ),
    Noun(
        "workflow",
        WORKFLOW.names,
        ("model.workflows.decisions", "client.workflows"),  # also names of phases, and decorators of functions
    ),
    Noun(
        "submission",
        tuple(name for name in SUBMISSION.names if name != "job"),  # every template may use params, job and tags
        ("model.executions.deduplication_keys",),  # why some are refused
    ),
    Noun("alert rule", RULE.names, ("features.alerts.model.rule",)),
    Noun(
        "alert channel",
        CHANNEL.names,
        ("features.alerts.cli",),  # the destination of a channel, in a list
        frozenset({"port"}),  # of a database
    ),
    Noun("template", TEMPLATE.names, ("features.templates.cli",)),
    Noun(
        "backfill",
        tuple(name for name in BACKFILL.names if name != "dryRun"),  # present in every request that can be retried
        (
            "features.backfills.client",
            "features.backfills.routes",  # the required fields
            "client.resources",  # an audit of fires has similar fields
        ),
    ),
    Noun("rollout", ROLLOUT.names, ("features.rollouts.model.read",)),
)
