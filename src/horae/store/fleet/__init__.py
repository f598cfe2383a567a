"""Scripts of sessions: the exchange, claims, rescue and scaling."""
