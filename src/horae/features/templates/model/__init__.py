"""Templates: their definition, the placeholders in them, and their API format."""
