"""How calls reach a server: retries, timeouts, TLS and the HTTP library."""
