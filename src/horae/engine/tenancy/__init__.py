"""Namespaces, keys, secrets, and limits on the requests of each tenant."""
