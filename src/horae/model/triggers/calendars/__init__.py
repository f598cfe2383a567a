"""Calendars: sets of open times. They are parsed, combined, looked up by name and queried.

Pure, no clock. `model.triggers.decisions` queries them about fires; the store keeps their versions.
"""
