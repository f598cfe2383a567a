"""Statistics: what became of executions, added up by the minute, hour and day."""
