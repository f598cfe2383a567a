"""The tables and scripts of templates."""
