"""The routes, one module per noun; `table.ROUTES` has all of them. A route parses, calls the engine and renders."""
