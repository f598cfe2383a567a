"""HTTP: REST routes, the endpoints of workers, authentication, events (SSE), metrics and the UI's files.

`routes/` declares the API, one module per noun; a route translates and does not decide. Only `cli` imports this layer.
"""
