"""Deletes what is past its retention, and erases what must go."""
