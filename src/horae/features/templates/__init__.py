"""Templates: jobs made from one definition with parameters, changed together."""
