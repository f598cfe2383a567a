"""Cron expressions: parsed once, then queried for their next and last fire in a time zone.

Each dialect (`unix` or `quartz`) parses its text into the same `Expression`; days, wall times, zones and fires do not
depend on the dialect. Pure, no clock; imported by `model.triggers.decisions`.
"""
