"""Adding up outcomes beside the hot path, and reading them as overviews."""
