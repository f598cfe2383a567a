"""Jobs: their versions, changes and reads, and applying documents that define them."""
