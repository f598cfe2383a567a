"""Scripts of sessions and servers: the exchange, claims, rescue and scaling."""
