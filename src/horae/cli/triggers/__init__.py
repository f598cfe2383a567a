"""Commands for triggers, their fires and the calendars they use."""
