"""The tables and scripts of backfills."""
