"""Cron expressions: parsed once, then asked for their next and last fire in a zone.

A dialect (`unix` or `quartz`) reads its text into one `Expression`; days, walls, zones and fires know none.
Pure, no clock; imported by `model.triggers.decisions`.
"""
