"""Calendars: every version of each, and which triggers go by which."""

from sqlalchemy import Index

from horae.store.schema.columns import BIG, ID, INT, TEXT, col, key, opt, partial, table

calendars = table(
    "calendars",
    key("namespace", INT),
    key("name", TEXT),
    key("version", INT),
    col("definition", TEXT),
    col("description", TEXT, "''"),
    col("valid_from", BIG),
    opt("valid_to", BIG),  # when the next version took its place, or it was deleted
    partial("calendars_present", "namespace", "name", where="valid_to IS NULL", unique=True),
)

# Rows of triggers that have not ended: a change of a calendar finds whose timers to look at.
calendar_triggers = table(
    "calendar_triggers",
    key("namespace", INT),
    key("calendar", TEXT),
    key("trigger_id", ID),
    col("outside", TEXT),  # what becomes of its fires while the calendar is closed
    Index("calendar_triggers_trigger", "trigger_id"),
    small=True,
)
