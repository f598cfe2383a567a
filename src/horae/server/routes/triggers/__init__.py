"""Routes of triggers, fires and calendars."""
