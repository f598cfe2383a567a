"""Routes of worker sessions, workers, enrolments and scaling."""
