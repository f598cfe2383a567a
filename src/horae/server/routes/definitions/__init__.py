"""Routes of jobs with their limits, of versions, and of applied documents."""
