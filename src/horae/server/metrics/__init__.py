"""Metrics: figures that this server counted, and figures read from the store on demand. One module per family.

`Metrics` belongs to the application; only the route of `/metrics` calls `exposition`.
"""
