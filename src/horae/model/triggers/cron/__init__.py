"""Cron expressions: parsed once, then queried for their next and last fire in a time zone.

Each dialect (`unix` or `quartz`) parses its text into the same `CronExpression`; days, wall times, zones and fires do
not depend on the dialect. All functions are pure and read no clock. `model.triggers.decisions` imports them.
"""
