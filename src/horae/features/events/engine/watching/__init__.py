"""Watching: places outside are listed again and again, and what is new in them fires. Only the node imports this."""
