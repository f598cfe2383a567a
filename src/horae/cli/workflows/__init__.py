"""Commands for workflows: their graphs and grids."""
