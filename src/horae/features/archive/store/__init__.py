"""The archive's tables and scripts."""
