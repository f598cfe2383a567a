"""Reading requests: queries, bodies, JSON schemas, and advice on mistakes."""
