"""Count outcomes outside the transactions of reports, and read them as statistics of jobs and as overviews."""
