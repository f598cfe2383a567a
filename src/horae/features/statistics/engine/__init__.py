"""Adding up outcomes outside the transactions of reports, and reading them as overviews."""
