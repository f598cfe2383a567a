"""Backfills: past nominal fires that did not run are run in order, a bounded number at a time.

`plan` computes the fires of a backfill, `work` chooses the next fires to run; both are pure.
"""
