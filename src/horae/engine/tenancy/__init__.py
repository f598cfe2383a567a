"""Namespaces, keys and secrets, and how much each tenant may ask of a server."""
