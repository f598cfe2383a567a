"""Features that a server can do without, one folder each with all its layers."""
