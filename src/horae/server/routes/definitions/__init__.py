"""Routes of jobs and their versions, keyed limits and applied documents."""
