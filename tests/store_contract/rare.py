"""Modules of the store whose statements do not run every day."""

from bench.runs import timer_fires
from horae.features.alerts.store import rules as alert_rules
from horae.features.archive.store import archives
from horae.features.audit_log.store import log as audit_log
from horae.features.backfills.store import work as backfill_work
from horae.features.dead_letters.store import reads as dead_letter_reads
from horae.features.erasure.store import executions as erasure
from horae.features.erasure.store import namespace_end, namespace_rows
from horae.features.logs import store as log_reads
from horae.features.rollouts.store import rollouts
from horae.features.statistics.store import reads as statistics_reads
from horae.features.templates.store import templates
from horae.features.users.store import users as people
from horae.store import checkup, epochs, seed
from horae.store.admission import adoption, circuit_reads, holds, queues
from horae.store.base import sealing
from horae.store.definitions import job_reads, job_templates
from horae.store.definitions import rollouts as rollouts_on
from horae.store.executions.leaving import cancel_job
from horae.store.executions.reads import (
    audit,
    child_lists,
    depths,
    execution_lists,
    explain_reads,
    item_parts,
    live_reads,
)
from horae.store.expiry import expiry, fire_expiry
from horae.store.fleet import autoscale
from horae.store.postgres import fire_partitions, partitions
from horae.store.tenancy import enrolments, namespaces, secrets
from horae.store.triggers import audit_fires, calendars, fire_reads, ledger, trigger_reads, triggers, zone_rules
from horae.store.triggers.dependencies import audit_joins, dependency_reads
from horae.store.workflows import audit as workflow_audit

# Requests of people, and definitions, deletions, sign-ins and restorations.
RARE_MODULES = (
    adoption,
    alert_rules,
    archives,
    audit,
    audit_fires,
    workflow_audit,
    audit_joins,
    audit_log,
    autoscale,
    backfill_work,
    calendars,
    cancel_job,
    child_lists,
    circuit_reads,
    dead_letter_reads,
    dependency_reads,
    depths,
    enrolments,
    erasure,
    execution_lists,
    explain_reads,
    fire_reads,
    holds,
    item_parts,
    job_reads,
    ledger,
    job_templates,
    live_reads,
    log_reads,
    namespace_end,
    namespace_rows,
    namespaces,
    people,
    queues,
    rollouts,
    rollouts_on,
    sealing,
    secrets,
    statistics_reads,
    templates,
    trigger_reads,
    triggers,
    zone_rules,
)
# Statements beside the moves: when a store is opened, checked or swept.
OUTSIDE = (checkup, epochs, expiry, fire_expiry, fire_partitions, partitions, seed, timer_fires)
