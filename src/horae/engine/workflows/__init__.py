"""Workflows: starting them, their graphs and grids, and steps completed by hand."""
