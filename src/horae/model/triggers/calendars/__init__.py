"""Calendars: sets of open times. They are parsed, combined, looked up by name and queried.

All functions are pure and read no clock. `model.triggers.decisions` queries calendars; the store keeps their versions.
"""
