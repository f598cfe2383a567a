"""HTTP: REST routes, the worker gateway's door, auth, events (SSE), metrics and the UI's files.

`routes/` says what there is, one module per noun; a route translates and does not think. Only `cli` imports this layer.
"""
