"""Import every module of tables, so that `metadata` knows all of them."""

from horae.features.alerts.store import tables as alerts
from horae.features.archive.store import tables as archives
from horae.features.artifacts.store import tables as artifacts
from horae.features.audit_log.store import tables as audit_log
from horae.features.backfills.store import tables as backfills
from horae.features.dead_letters.store import tables as replays
from horae.features.events.store import tables as events
from horae.features.rollouts.store import tables as rollouts
from horae.features.statistics.store import tables as statistics
from horae.features.templates.store import tables as templates
from horae.features.users.store import tables as people
from horae.store.schema import (
    access,
    calendars,
    circuits,
    definitions,
    executions,
    fleet,
    flow_waits,
    flows,
    holds,
    limits,
    meetings,
    quotas,
    secrets,
    signals,
)
from horae.store.schema.columns import metadata

__all__ = (
    "access",
    "alerts",
    "archives",
    "artifacts",
    "audit_log",
    "backfills",
    "calendars",
    "circuits",
    "definitions",
    "events",
    "executions",
    "fleet",
    "flow_waits",
    "flows",
    "holds",
    "limits",
    "meetings",
    "metadata",
    "people",
    "quotas",
    "replays",
    "rollouts",
    "secrets",
    "signals",
    "statistics",
    "templates",
)
