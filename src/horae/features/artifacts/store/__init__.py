"""The tables and scripts of artifacts."""
