"""The HTTP server: framing, TLS, proxies, bounds on what clients may cost. It knows no route."""
