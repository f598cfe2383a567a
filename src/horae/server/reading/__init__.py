"""Reading of requests: queries, bodies, JSON schemas, and messages for mistakes."""
