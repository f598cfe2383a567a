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
    admission,
    definitions,
    executions,
    fleet,
    tenancy,
    workflows,
)
from horae.store.schema.columns import metadata

__all__ = (
    "admission",
    "alerts",
    "archives",
    "artifacts",
    "audit_log",
    "backfills",
    "definitions",
    "events",
    "executions",
    "fleet",
    "metadata",
    "people",
    "replays",
    "rollouts",
    "statistics",
    "templates",
    "tenancy",
    "workflows",
)
