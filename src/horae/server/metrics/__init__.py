"""Metrics: figures that this server counted, and figures that each scrape reads from the store.

Each application has a `Metrics`. Only the route of `/metrics` calls `exposition`.
"""
