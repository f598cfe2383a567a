"""Watching: folders and buckets are scanned periodically, and new objects in them fire triggers."""
