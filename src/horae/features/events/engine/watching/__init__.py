"""Watching: places outside are listed periodically, and new objects fire. Only the feature's part imports this."""
