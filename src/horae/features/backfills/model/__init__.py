"""Backfills: running past nominal fires that did not run, in order, a bounded number at a time.

Values and pure decisions: the fires of a backfill (`plan`), and the choice of the next ones to run (`work`).
"""
