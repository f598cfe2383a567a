"""Triggers: the scheduler, calendars, dependencies and turns."""
