"""Templates: values and their API format."""
