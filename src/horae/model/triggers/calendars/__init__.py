"""Calendars: when something is open, as values that are read, put together, named and asked.

Pure, no clock. `model.triggers.decisions` asks them about fires, the store keeps their versions.
"""
