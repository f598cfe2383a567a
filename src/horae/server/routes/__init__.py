"""The routes, one module per noun; `ROUTES` is all of them. A route parses, calls the engine and renders."""
