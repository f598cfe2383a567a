"""The tables and scripts of statistics."""
