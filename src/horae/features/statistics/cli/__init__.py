"""The commands `overview` and `statistics`."""
