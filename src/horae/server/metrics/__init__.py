"""Metrics: what this server measured, and what the store says when it is asked. One module per family.

`Metrics` is the application's; only the route of `/metrics` asks for an `exposition`.
"""
