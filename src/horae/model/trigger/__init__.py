"""Triggers: when a job fires, what becomes of each fire, and how both are written.

Values, rules and decisions, all pure: the engine brings the clock and the store.
"""

from horae.model.trigger.decide import Decision, Disposition, Fire, LedgerRun, cover, decide, is_spent, latest, upcoming
from horae.model.trigger.describe import describe
from horae.model.trigger.rules import GRACE, Misfire, Overlap, Rules, due_at, parse_misfire, render_misfire
from horae.model.trigger.schedule import parse_schedule, render_schedule
from horae.model.trigger.values import Cron, Interval, Once, Trigger, begin, next_fire, previous_fire

__all__ = [
    "GRACE",
    "Cron",
    "Decision",
    "Disposition",
    "Fire",
    "Interval",
    "LedgerRun",
    "Misfire",
    "Once",
    "Overlap",
    "Rules",
    "Trigger",
    "begin",
    "cover",
    "decide",
    "describe",
    "due_at",
    "is_spent",
    "latest",
    "next_fire",
    "parse_misfire",
    "parse_schedule",
    "previous_fire",
    "render_misfire",
    "render_schedule",
    "upcoming",
]
