"""Watching: places outside are scanned periodically, and new objects fire. Only the feature's part imports this."""
