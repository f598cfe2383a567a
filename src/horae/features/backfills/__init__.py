"""Backfills: run the fires of a past span that did not run."""
