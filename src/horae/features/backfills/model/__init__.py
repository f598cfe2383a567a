"""Backfills: running nominal fires of the past that did not run, in order, a bounded number at a time.

Values and decisions, all pure: which fires a backfill is about (`plan`), and what to do with the next of them (`work`).
"""
