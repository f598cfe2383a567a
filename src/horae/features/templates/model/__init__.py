"""Templates: values and their spelling."""
