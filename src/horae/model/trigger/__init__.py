"""Triggers: when a job fires, what becomes of each fire, and how both are written.

Values, rules and decisions, all pure: the engine brings the clock and the store.
"""

from horae.model.trigger.decide import (
    NONEXISTENT,
    Decision,
    Disposition,
    Fire,
    LedgerRun,
    cover,
    decide,
    due_after,
    is_spent,
    latest,
    upcoming,
)
from horae.model.trigger.describe import describe
from horae.model.trigger.external import Event, Watch
from horae.model.trigger.params import FIRE_NAMES, fill_fire_params, fire_scope
from horae.model.trigger.rules import GRACE, Misfire, Overlap, Rules, due_at, offset_in, parse_misfire, render_misfire
from horae.model.trigger.schedule import KINDS, Kind, kind_of, parse_schedule, render_schedule
from horae.model.trigger.values import Cron, Interval, Once, Timed, Trigger, begin, next_fire, previous_fire
from horae.model.trigger.when import SCHEDULE, When

__all__ = [
    "FIRE_NAMES",
    "GRACE",
    "KINDS",
    "NONEXISTENT",
    "SCHEDULE",
    "Cron",
    "Decision",
    "Disposition",
    "Event",
    "Fire",
    "Interval",
    "Kind",
    "LedgerRun",
    "Misfire",
    "Once",
    "Overlap",
    "Rules",
    "Timed",
    "Trigger",
    "Watch",
    "When",
    "begin",
    "cover",
    "decide",
    "describe",
    "due_after",
    "due_at",
    "fill_fire_params",
    "fire_scope",
    "is_spent",
    "kind_of",
    "latest",
    "next_fire",
    "offset_in",
    "parse_misfire",
    "parse_schedule",
    "previous_fire",
    "render_misfire",
    "render_schedule",
    "upcoming",
]
