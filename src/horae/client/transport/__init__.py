"""Transport of calls to a server: retries, timeouts, TLS and the HTTP library."""
